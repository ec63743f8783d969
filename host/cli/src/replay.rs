//! `gavel replay`: repeats recorded verdicts.

pub mod print;
mod rows;

use crate::component::component;
use crate::plugin_args;
use crate::progress;
use crate::score::recording::show_grants;
use crate::terminal;
use anyhow::{Result, bail};
use clap::Args;
use gavel_plugin::SandboxConfig;
use gavel_scoring::recording::Recording;
use gavel_scoring::replay::{Change, Selection, compare, verify};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Repeat recorded verdicts, without a model, a GPU or a network.
///
/// Each verdict must be the same to the last bit; only timings may differ. With another component or other parameters
/// for a plugin, the command shows instead what that reward would have changed. Of a run of `gavel sft`, it prints the
/// rows that a step trained on.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  gavel replay runs/demo\n  gavel replay runs/demo --step 300 --sample 300.12.5\n  gavel replay runs/demo --plugin answer=stricter.wasm --params answer='{\"prefix\": \"Answer:\"}'\n\nExit status: 0 all the same; 1 something differs or is damaged; 2 usage, or the recording cannot be replayed."
)]
pub struct ReplayArgs {
    /// The folder of a run, or of a recording of `gavel score`.
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Only the samples of this step.
    #[arg(long, value_name = "S")]
    step: Option<u64>,
    /// Only the sample with this id, or the samples of the task with this id. Of a run of `gavel sft`, the row with this
    /// id, or the row at this place, such as "rows.jsonl, line 3".
    #[arg(long, value_name = "ID")]
    sample: Option<String>,
    /// Another component, or the folder of a built plugin, for a plugin of the run.
    #[arg(long = "plugin", value_name = "[NAME=]PATH")]
    plugins: Vec<Component>,
    /// Other parameters for a plugin of the run, a JSON object. With one plugin, its name may be left out.
    #[arg(long, value_name = "[NAME=]JSON")]
    params: Vec<String>,
    /// Grant plugins what they were granted of this machine: folders, variables, clock and random numbers.
    #[arg(long)]
    allow_grants: bool,
    /// How many of the worst disagreements, or of the differences, to show.
    #[arg(long, default_value_t = 10, value_name = "N")]
    worst: usize,
    /// Threads that plugins run on; by default one for each core.
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Print JSON on stdout.
    #[arg(long)]
    json: bool,
}

/// One `--plugin`.
#[derive(Debug, Clone, PartialEq)]
struct Component {
    name: Option<String>,
    path: PathBuf,
}

impl std::str::FromStr for Component {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, path) = match text.split_once('=') {
            Some((name, path)) if !name.contains('/') => (Some(name.to_owned()), path),
            _ => (None, text),
        };
        match path.is_empty() || name.as_ref().is_some_and(String::is_empty) {
            true => Err("write [NAME=]PATH".into()),
            false => Ok(Self { name, path: path.into() }),
        }
    }
}

pub fn run(args: ReplayArgs) -> Result<ExitCode> {
    if rows::has_rows(&args.run) {
        if !(args.plugins.is_empty() && args.params.is_empty()) {
            bail!("{} is a run of gavel sft, which has no verdicts to repeat", args.run.display());
        }
        return rows::run(&args.run, args.step, args.sample.as_deref(), args.json);
    }
    // A sample that is selected by its id is found by reading its step alone.
    let found = args.sample.as_ref().map(|id| Recording::open_for(&args.run, id, args.step)).transpose()?.flatten();
    let (recording, step) = match found {
        Some((recording, step)) => (recording, Some(step)),
        None => (Recording::open(&args.run)?, args.step),
    };
    let recording = recording.allow_grants(args.allow_grants);
    if args.allow_grants {
        show_grants(&recording);
    }
    let changes = changes(&recording, args.plugins, &args.params)?;
    let selection = Selection { step, sample: args.sample };
    let config = SandboxConfig::with_threads(plugin_args::workers(args.workers)?);
    let bar = progress::bar(None, "samples");
    let done = || bar.inc(1);
    let same = if changes.is_empty() {
        let found = verify(&recording, &selection, config, done)?;
        bar.finish_and_clear();
        match args.json {
            true => terminal::json(&found)?,
            false => {
                print::verification(&args.run, &found, args.worst);
                print::recorded(&found.recorded);
            }
        }
        found.is_same()
    } else {
        let found = compare(&recording, &selection, &changes, config, args.worst, done)?;
        bar.finish_and_clear();
        match args.json {
            true => terminal::json(&found)?,
            false => {
                print::comparison(&args.run, &found);
                print::recorded(&found.recorded);
            }
        }
        found.is_same()
    };
    Ok(if same { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// The components and parameters of the arguments, plugin by plugin.
fn changes(recording: &Recording, components: Vec<Component>, params: &[String]) -> Result<Vec<Change>> {
    let mut changes: Vec<Change> = Vec::new();
    for Component { name, path: given } in components {
        let (own_name, path) = component(&given)?;
        let name = match name {
            Some(name) => name,
            None => implied_name(recording, &given, own_name.as_deref())?,
        };
        if changes.iter().any(|change| change.name == name) {
            bail!("--plugin names `{name}` twice");
        }
        changes.push(Change { name, path: Some(path), params: None });
    }
    let names = names(recording);
    for text in params {
        let (name, params) = plugin_args::params(text, &names)?;
        match changes.iter_mut().find(|change| change.name == name) {
            Some(change) => change.params = Some(params),
            None => changes.push(Change { name: name.to_owned(), path: None, params: Some(params) }),
        }
    }
    Ok(changes)
}

/// The plugins of a recording.
fn names(recording: &Recording) -> Vec<String> {
    let mut names: Vec<String> =
        recording.plugin_sets().iter().flat_map(|set| &set.plugins).map(|plugin| plugin.name.clone()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// The plugin that a component without a name replaces: the one with its own name, or the only one.
fn implied_name(recording: &Recording, path: &Path, own_name: Option<&str>) -> Result<String> {
    let names = names(recording);
    match (names.iter().find(|name| own_name == Some(name.as_str())), &names[..]) {
        (Some(name), _) | (None, [name]) => Ok(name.clone()),
        _ => bail!(
            "--plugin {} does not name the plugin that it replaces\nhint: write NAME={0}, with one of {}",
            path.display(),
            names.join(", ")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_optional() {
        let parse = |text: &str| text.parse::<Component>();
        let component = |name: Option<&str>, path: &str| Component { name: name.map(str::to_owned), path: path.into() };
        assert_eq!(parse("a/math.wasm"), Ok(component(None, "a/math.wasm")));
        assert_eq!(parse("m=a/b=c.wasm"), Ok(component(Some("m"), "a/b=c.wasm")));
        assert_eq!(parse("./a=b.wasm"), Ok(component(None, "./a=b.wasm")));
        assert!(parse("m=").is_err() && parse("=x").is_err());
    }
}
