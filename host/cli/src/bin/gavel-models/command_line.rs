//! The command line of this process, as the folder of a run records it.

use std::ffi::OsString;

/// Words in the name or in the value of a setting that may be a secret.
const SECRET: [&str; 14] = [
    "apikey",
    "auth",
    "authorization",
    "bearer",
    "cookie",
    "credential",
    "credentials",
    "header",
    "headers",
    "key",
    "keys",
    "passwd",
    "password",
    "secret",
];

/// Another such word, which also counts what a model reads.
const TOKEN: &str = "token";

/// The arguments as a POSIX shell reads them. The values of settings that may be secrets are left out.
pub fn recorded(arguments: impl IntoIterator<Item = OsString>) -> String {
    let words = arguments.into_iter().map(|argument| quoted(&without_secret(&argument.to_string_lossy())));
    words.collect::<Vec<_>>().join(" ")
}

/// `KEY=…` in place of `KEY=VALUE` if either of them looks like a secret.
fn without_secret(argument: &str) -> String {
    let (option, setting) = match argument.split_once('=') {
        Some((option, setting)) if option.starts_with("--") => (&argument[..=option.len()], setting),
        _ => ("", argument),
    };
    match setting.split_once('=') {
        Some((key, value)) if names_secret(key) || has_secret(value) => format!("{option}{key}=…"),
        _ => argument.to_owned(),
    }
}

/// Whether a key is for a secret: `headers.x`, `api_key` or `access_token`, but not `stop_token_ids`.
fn names_secret(key: &str) -> bool {
    words(key).any(|word| SECRET.contains(&word.as_str())) || words(key).last().is_some_and(|last| last == TOKEN)
}

/// Whether a value may have a secret in it. A plain name, such as `"token-mean"`, has none.
fn has_secret(value: &str) -> bool {
    let is_name = value.trim_matches('"').chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
    !is_name && (words(value).any(|word| word == TOKEN || SECRET.contains(&word.as_str())) || has_user(value))
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_ascii_lowercase)
}

/// Whether a text has a URL with a user and a password, such as `https://user:password@host`.
fn has_user(text: &str) -> bool {
    let mut hosts = text.split("://").skip(1).map(|rest| rest.split(['/', '?', '#']).next().unwrap_or_default());
    hosts.any(|host| host.contains('@'))
}

/// A word as a POSIX shell reads it.
fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:+,@%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(arguments: &[&str]) -> String {
        recorded(arguments.iter().map(OsString::from))
    }

    #[test]
    fn a_shell_reads_the_line_again() {
        assert_eq!(
            line(&["gavel", "train", "-c", "my run.toml", "--set", "log.name=it's", "--set=train.steps=5", ""]),
            r"gavel train -c 'my run.toml' --set 'log.name=it'\''s' --set=train.steps=5 ''"
        );
    }

    #[test]
    fn what_may_be_a_secret_is_left_out() {
        for (setting, shown) in [
            ("chat.judge.headers.x-auth=abc", "'chat.judge.headers.x-auth=…'"),
            ("--set=reward.a.params.api_key=abc", "'--set=reward.a.params.api_key=…'"),
            ("--set=chat.judge={ options = { token = \"abc\" } }", "'--set=chat.judge=…'"),
            ("tool.t.mcp=[\"server\", \"--password=abc\"]", "'tool.t.mcp=…'"),
            ("chat.judge.base_url=https://me:abc@host/v1", "'chat.judge.base_url=…'"),
            ("reward.a.params.access_token=abc", "'reward.a.params.access_token=…'"),
            ("reward.a.params.Authorization=abc", "'reward.a.params.Authorization=…'"),
        ] {
            assert_eq!(line(&[setting]), shown);
        }
        for plain in [
            "rollout.max_tokens=64",
            "rollout.stop_token_ids=[100]",
            "--set=train.off_policy.rollout_is=\"token\"",
            "chat.judge.base_url=https://host/v1/@me",
            "--set",
            "keys.toml",
        ] {
            assert!(!line(&[plain]).contains('…'), "{plain}");
        }
    }
}
