//! Where a key of a configuration is written.

use gavel_runs::ConfigFile;
use std::fmt;
use std::path::PathBuf;

/// Where a key is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// A line of a file, from 1.
    #[allow(missing_docs, reason = "the names say it")]
    Line { path: PathBuf, line: usize },
    /// A `--set`, as it was given.
    Setting(String),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { path, line } => write!(f, "{}, line {line}", path.display()),
            Self::Setting(setting) => write!(f, "--set {setting}"),
        }
    }
}

impl Place {
    /// Where `key` is written. Of a key that is not written, the nearest table around it that is; `None` if there is no
    /// such table.
    pub(super) fn of(key: &str, file: &ConfigFile, settings: &[String]) -> Option<Self> {
        let find = |is_meant: &dyn Fn(&str) -> bool| {
            let setting =
                settings.iter().rfind(|setting| setting.split_once('=').is_some_and(|(name, _)| is_meant(name)));
            setting.map(|setting| Self::Setting(setting.clone()))
        };
        let line = |key: &str| file.line_of(key).map(|line| Self::Line { path: file.file_of(key).to_owned(), line });
        find(&|name| is_in(key, name))
            .or_else(|| line(key))
            .or_else(|| find(&|name| is_in(name, key)))
            .or_else(|| tables_around(key).find_map(line))
    }
}

/// Whether `key` is `table` itself or in it.
fn is_in(key: &str, table: &str) -> bool {
    key.strip_prefix(table).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

/// The tables that `key` is in, the innermost first.
fn tables_around(key: &str) -> impl Iterator<Item = &str> {
    std::iter::successors(Some(key), |key| Some(&key[..key.rfind(['.', '['])?])).skip(1)
}

#[cfg(test)]
mod tests {
    use crate::{RlTable, load};

    const BASE: &str = r#"
seed = 1
[model]
path = "."

[data]
train = [
    "a.jsonl",
    { path = "b.jsonl" },
]
[train]
steps = 4
prompts_per_step = 2
learning_rate = 1e-3
optimizer = { eps = 1e-8 }
[[reward]]
name = "v.2"
url = "http://127.0.0.1:1"
[chat.judge]
base_url = "http://127.0.0.1:1"
model = "m"
[reward_model.quality]
url = "http://127.0.0.1:1"
"#;

    /// The error of `run.toml`, which includes [`BASE`] with one line for another, without the folder of the files.
    fn refused(change: (&str, &str), run: &str, settings: &[&str]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        assert!(BASE.contains(change.0));
        write("base.toml", &BASE.replacen(change.0, change.1, 1));
        write("run.toml", &format!("include = 'base.toml'\nrollout.max_tokens = 8\n{run}"));
        let settings: Vec<String> = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let error = load::<RlTable>(&folder.path().join("run.toml"), &settings).unwrap_err().to_string();
        error.replace(&format!("{}/", folder.path().display()), "")
    }

    #[test]
    fn what_is_out_of_range_names_the_line_where_it_is_written() {
        for (change, run, says) in [
            (
                ("learning_rate = 1e-3", "learning_rate = -1.0"),
                "",
                "base.toml, line 14: train.learning_rate must be a number above 0, not -1",
            ),
            (
                ("", ""),
                "train.learning_rate = 0",
                "run.toml, line 3: train.learning_rate must be a number above 0, not 0",
            ),
            (("eps = 1e-8", "eps = 0"), "", "base.toml, line 15: train.optimizer.eps must be a number above 0, not 0"),
            (
                ("", ""),
                "[train]\nwarmup_steps = 9",
                "run.toml, line 4: train.warmup_steps must be at most the 4 steps of the run, not 9",
            ),
            (
                ("", ""),
                "[train]\nmin_lr_ratio = 2",
                "run.toml, line 4: train.min_lr_ratio must be between 0 and 1, not 2",
            ),
            (("", ""), "rollout.top_k = 0", "run.toml, line 3: rollout: `top_k` must be at least 1"),
            (("", ""), "rollout.stop = ['']", "run.toml, line 3: rollout.stop must be texts that are not empty"),
            (("", ""), "rollout.group_size = 1\n", "run.toml, line 3: rollout.group_size must be at least 2, not 1"),
            (("steps = 4\n", ""), "", "base.toml, line 11: train.steps is missing\nhint: or set train.epochs"),
            (
                (
                    "    \"a.jsonl\",\n    { path = \"b.jsonl\" },",
                    "    { path = \"a\", weight = 1 },\n    { path = \"b\", weight = 0 },",
                ),
                "",
                "base.toml, line 9: data.train: weight must be a number above 0, not 0",
            ),
            (
                ("url = \"http://127.0.0.1:1\"\n[chat", "url = \"http://127.0.0.1:1\"\nweight = inf\n[chat"),
                "",
                "base.toml, line 19: reward.v.2.weight must be a finite number, not inf",
            ),
            (
                ("url = \"http://127.0.0.1:1\"\n[chat", "url = \"http://127.0.0.1:1\"\nscale = 2\n[chat"),
                "",
                "base.toml, line 19: reward `v.2`: scale, clip and credit are for a reward with reward_model",
            ),
            (
                ("model = \"m\"", "model = \"m\"\ntimeout = \"0s\""),
                "",
                "base.toml, line 22: chat.judge.timeout and deadline must be longer than 0",
            ),
            (
                ("", ""),
                "chat.judge.options = { stream = true }",
                "run.toml, line 3: chat.judge.options: `stream` cannot be set",
            ),
            (("", ""), "reward_model.quality.yes_no = ['a', 'b']", "run.toml, line 3: reward_model.quality: "),
            (("", ""), "limits.cpu = '0s'", "run.toml, line 3: limits.cpu must be more than 0, not 0"),
            (
                ("", ""),
                "reward = [{ name = 'v.2', limits.fuel = 0 }]",
                "run.toml, line 3: reward.v.2.limits.fuel must be more than 0, not 0",
            ),
            (
                ("", ""),
                "resources.plugin_threads = 4294967295",
                "run.toml, line 3: resources.plugin_threads must be from 1 to 4096, not 4294967295",
            ),
            (
                ("", ""),
                "chat.judge.options = { a = [1, { b = nan }] }",
                "run.toml, line 3: chat.judge.options.a.b must be a finite number, as JSON has them",
            ),
            (
                ("url = \"http://127.0.0.1:1\"\n[chat", "url = \"http://127.0.0.1:1\"\nparams.x = inf\n[chat"),
                "",
                "base.toml, line 19: reward.v.2.params.x must be a finite number",
            ),
            (
                ("", ""),
                "model.chat_template_kwargs.x = nan",
                "run.toml, line 3: model.chat_template_kwargs.x must be a finite number",
            ),
            (("", ""), "schedule.watchdog = '5ms'", "run.toml, line 3: schedule.watchdog must be at least 1s, not 5ms"),
        ] {
            let error = refused(change, run, &[]);
            assert!(error.starts_with(says), "{change:?}, {run}: {error}");
        }
    }

    #[test]
    fn what_a_setting_sets_names_the_setting() {
        let cases: [(&[&str], &str); 6] = [
            (&["train.learning_rate=-1"], "--set train.learning_rate=-1: train.learning_rate must be a number above 0"),
            (&["train.learning_rate=-1", "train.steps=0"], "--set train.steps=0: train.steps must be at least 1"),
            (&["train.optimizer={eps = 0}"], "--set train.optimizer={eps = 0}: train.optimizer.eps must be"),
            (&["data.train=[{path = 'a', weight = 0}, {path = 'b', weight = 1}]"], "--set data.train="),
            (
                &["train.reference.every=2"],
                "--set train.reference.every=2: train.reference: nothing measures the distance",
            ),
            // Another key is wrong only because of the setting.
            (
                &["train.prompts_per_step=3", "train.mini_batch_prompts=2"],
                "--set train.mini_batch_prompts=2: train.mini_batch_prompts must be a divisor of prompts_per_step (3), not 2",
            ),
        ];
        for (settings, says) in cases {
            let error = refused(("", ""), "", settings);
            assert!(error.starts_with(says), "{settings:?}: {error}");
        }
    }
}
