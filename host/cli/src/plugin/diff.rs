//! `gavel plugin diff`

use super::subject::Subject;
use super::test::{mib, ms};
use crate::plugin_args;
use crate::replay::print;
use crate::score::source::Source;
use crate::terminal::{self, outln};
use anyhow::{Result, bail};
use clap::Args;
use gavel_data::{ColumnNames, KnownColumn};
use gavel_plugin::SandboxConfig;
use gavel_scoring::replay::{Cost, Version, Versions, versions};
use std::path::PathBuf;
use std::process::ExitCode;

/// Compare two versions of a plugin over the same rows.
#[derive(Args)]
#[command(
    after_help = "Example:\n  gavel plugin diff target/plugins/math.wasm math --data completions.jsonl\n\nTwo verdicts are the same if they have the same kind of outcome and, to the last bit, the same score. `gavel replay RUN --plugin NAME=PATH` shows what a change would have done to a run.\n\nExit status: 0 all verdicts are the same; 1 some differ; 2 usage, or a plugin does not build or load."
)]
pub struct DiffArgs {
    /// The old version: the folder of a plugin or a component.
    old: PathBuf,
    /// The new version.
    new: PathBuf,
    /// Completions: a .jsonl or .parquet file, a folder of them, a pattern, or any of these on the hub,
    /// hf://datasets/ORG/NAME/FILES. Consecutive rows with the same `id` are a group.
    #[arg(long, value_name = "PATH")]
    data: PathBuf,
    /// The name of a column in the completions, as in [data.columns]: ground_truth=final_answer.
    #[arg(long = "column", value_name = "NAME=COLUMN", value_parser = plugin_args::column)]
    columns: Vec<(KnownColumn, String)>,
    /// Parameters of both versions, in place of those in plugin.toml.
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
    /// How many of the worst disagreements to show.
    #[arg(long, value_name = "N", default_value_t = 10)]
    worst: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: DiffArgs) -> Result<ExitCode> {
    let [old, new] = [&args.old, &args.new].map(|path| Subject::open(path, args.params.as_deref()));
    let (old, new) = (old?, new?);
    if let Some(spec) = [&old.spec, &new.spec].into_iter().find(|spec| !spec.grants.chat.is_empty()) {
        bail!(
            "`{}` asks language models, and two versions would get different answers\nhint: record the answers with `gavel score --record DIR`, and compare with `gavel replay DIR --plugin NAME=PATH`",
            spec.name
        );
    }
    let names: ColumnNames = args.columns.iter().cloned().collect();
    let data = gavel_hub::dataset(&args.data)?;
    let rows = Source::dataset(&data, &names, 0)?;
    old.build()?;
    new.build()?;
    let mut unreadable = None;
    let groups = rows.map_while(|group| {
        let group: Result<Vec<_>, String> =
            group.into_iter().map(|row| row.map(|row| (row.sample, row.seed))).collect();
        group.map_err(|what| unreadable = Some(what)).ok()
    });
    let config = SandboxConfig::with_threads(plugin_args::workers(None)?);
    let version = |subject: Subject| Version { programs: subject.programs(), plugin: subject.spec };
    let found = versions(version(old), version(new), groups, config, args.worst)?;
    if let Some(what) = unreadable {
        bail!("{what}");
    }
    if args.json {
        terminal::json_pretty(&found)?;
    } else {
        print(&args, &found);
    }
    Ok(if found.comparison.is_same() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

fn print(args: &DiffArgs, Versions { comparison, old, new }: &Versions) {
    outln!("{} -> {}", args.old.display(), args.new.display());
    print::changes(comparison);
    let Cost { cpu_us, peak_memory } = new;
    outln!("cost");
    outln!("  processor        {} -> {}{}", ms(old.cpu_us), ms(*cpu_us), ratio(old.cpu_us, *cpu_us));
    outln!(
        "  most memory      {} -> {}{}",
        mib(old.peak_memory),
        mib(*peak_memory),
        ratio(old.peak_memory, *peak_memory)
    );
    print::worst(comparison, ["old", "new"]);
}

fn ratio(old: u64, new: u64) -> String {
    if old == 0 { String::new() } else { format!(" ({:.2} times)", new as f64 / old as f64) }
}
