//! `gavel train`, `sft`, `reward-model` and `dpo`

use crate::command_line;
use crate::environment::prepare_one_team;
use crate::shown_rows::print_rows;
use anyhow::{Context, Result};
use clap::{ArgGroup, Args};
use gavel::component::component;
use gavel::terminal::{self, errln, outln};
use gavel_config::{Config, DpoTable, RewardModelTrainTable, RlTable, SftTable, TrainTable, load};
use gavel_data::{CausedBy, OutcomeKind};
use gavel_pipeline::{Check, Control, DryRun, LongWait, Planned, PlannedGpu, Start, Summary};
use gavel_torch::peers::{Peers, Rendezvous};
use gavel_tracking::MetricsListener;
use serde::de::DeserializeOwned;
use signal_hook::consts::{SIGINT, SIGTERM, SIGUSR1};
use signal_hook::low_level::emulate_default_handler;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::process::ExitCode;

/// The exit status of a run that a signal ended after a step, as a shell gives it for Ctrl-C.
const STOPPED: u8 = 130;

/// Post-train a policy with GRPO from the scores of its rewards.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  gavel train -c run.toml --dry-run\n  gavel train -c run.toml --set train.steps=50 --set log.name=short\n  gavel train -c run.toml --resume"
)]
pub struct TrainArgs {
    #[command(flatten)]
    run: RunArgs,
}

/// Fine-tune a policy on the responses of a dataset.
#[derive(Args)]
#[command(after_help = "Examples:\n  gavel sft -c sft.toml --set seed=2\n  gavel sft -c sft.toml --show 3")]
pub struct SftArgs {
    #[command(flatten)]
    run: RunArgs,
}

/// Train a reward model on pairs, of which one side is preferred.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  gavel reward-model -c reward.toml --dry-run\n  gavel reward-model -c reward.toml --set train.steps=200"
)]
pub struct RewardModelArgs {
    #[command(flatten)]
    run: RunArgs,
}

/// Train a policy on pairs of responses with DPO, without a reward model.
#[derive(Args)]
#[command(after_help = "Examples:\n  gavel dpo -c dpo.toml --set train.beta=0.05\n  gavel dpo -c dpo.toml --show 3")]
pub struct DpoArgs {
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Args)]
#[command(group = ArgGroup::new("resuming").multiple(true))]
struct RunArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Continue the newest run of this name from its last checkpoint.
    #[arg(long, group = "resuming")]
    resume: bool,
    /// Continue the newest run of this name from the checkpoint of this step; its later steps are dropped.
    #[arg(long, value_name = "STEP", group = "resuming")]
    resume_from: Option<u64>,
    /// Continue even if a plugin, its parameters, its limits or its weight have changed.
    #[arg(long, requires = "resuming")]
    allow_changed_plugins: bool,
    /// Check every file, plugin and row; print the configuration with every default, and the memory that the run needs.
    #[arg(long, conflicts_with = "resuming")]
    dry_run: bool,
    /// Print the memory of each of N ranks, instead of the memory of one process.
    #[arg(long, value_name = "N", requires = "dry_run", default_value_t = NonZeroUsize::MIN, hide_default_value = true)]
    ranks: NonZeroUsize,
    /// Plan for a GPU with this memory, such as 80GiB, or of this name, such as H100. It need not be there.
    #[arg(long, value_name = "SIZE|GPU", requires = "dry_run")]
    device_memory: Option<PlannedGpu>,
    /// Print the first N rows as the model reads them, with what it learns of them marked, and start nothing.
    #[arg(long, value_name = "N", conflicts_with_all = ["resuming", "dry_run"])]
    show: Option<NonZeroUsize>,
    /// Show the run's numbers to Prometheus at http://ADDRESS/metrics while it is under way. There is no authentication:
    /// everybody who reaches the port may read them.
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["dry_run", "show"])]
    metrics: Option<SocketAddr>,
    /// Print the summary, or the rows of --show, as JSON on stdout.
    #[arg(long)]
    json: bool,
}

impl RunArgs {
    /// The configuration of the run, which shows its numbers where it is asked to: of several ranks, rank 0 does.
    fn read<T: TrainTable + DeserializeOwned>(&self) -> Result<Config<T>> {
        let mut config = self.config.read::<T>(&self.config.settings)?;
        let is_first = !matches!(Rendezvous::from_environment(), Ok(Some(rank)) if rank.rank > 0);
        if let Some(address) = self.metrics.filter(|_| is_first) {
            let listener = MetricsListener::bind(address).with_context(|| {
                format!("--metrics: cannot listen on {address}\nhint: give another port; 0 takes a free one")
            })?;
            tracing::info!("metrics at http://{}/metrics", listener.address().context("cannot read the address")?);
            config.log.metrics = Some(listener);
        }
        Ok(config)
    }

    fn start(&self) -> Start {
        match self.resume || self.resume_from.is_some() {
            true => Start::Resume { from: self.resume_from, allow_changed_plugins: self.allow_changed_plugins },
            false if is_again() => Start::Again,
            false => Start::New,
        }
    }

    fn planned(&self) -> Planned {
        Planned { ranks: self.ranks.get(), gpu: self.device_memory.clone() }
    }

    /// Starts the run, which a signal ends after the step under way, and prints its summary: of several ranks, on rank 0.
    fn start_and_print(
        &self,
        run: impl FnOnce(Start, &Peers, &Control) -> std::result::Result<Summary, gavel_pipeline::PipelineError>,
    ) -> Result<ExitCode> {
        prepare_one_team()?;
        let control = Control::default();
        let peers = Peers::from_environment()?;
        listen(control.clone(), peers.rank() == 0)?;
        let summary = run(self.start(), &peers, &control)?;
        if peers.rank() == 0 {
            print_summary(&summary, self.json)?;
        }
        Ok(if summary.is_stopped { ExitCode::from(STOPPED) } else { ExitCode::SUCCESS })
    }
}

/// The file of a configuration, and the values that are changed for one run.
#[derive(Args)]
pub struct ConfigArgs {
    /// The run's configuration, TOML. Paths in it are relative to the current folder.
    #[arg(short, long, value_name = "FILE")]
    pub config: PathBuf,
    /// Change a value for this run: train.steps=50, or reward.NAME.weight=0.2 for one reward.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub settings: Vec<String>,
}

impl ConfigArgs {
    /// Reads and checks the configuration, changed by `settings`. A plugin's folder in it stands for its built component.
    pub fn read<T: TrainTable + DeserializeOwned>(&self, settings: &[String]) -> Result<Config<T>> {
        let mut config = load::<T>(&self.config, settings)?;
        config.log.command = Some(command_line::recorded(std::env::args_os()));
        let rewards = config.reward.iter_mut().map(|reward| &mut reward.path);
        let tools = config.tool.iter_mut().map(|tool| &mut tool.path);
        let deciders = config.plugin.values_mut().map(|plugin| &mut plugin.path);
        for path in rewards.chain(tools).chain(config.agent.paths_mut()).flatten().chain(deciders) {
            (_, *path) = component(path)?;
        }
        Ok(config)
    }
}

pub fn train(args: TrainArgs) -> Result<ExitCode> {
    let TrainArgs { run } = args;
    let config = run.read::<RlTable>()?;
    if let Some(count) = run.show {
        return print_rows(&gavel_pipeline::show_train(&config, count)?, run.json);
    }
    if run.dry_run {
        return print_dry_run(&gavel_pipeline::dry_run_train(&config, run.planned())?);
    }
    run.start_and_print(|start, peers, control| gavel_pipeline::train(&config, start, peers, control))
}

pub fn sft(args: SftArgs) -> Result<ExitCode> {
    let SftArgs { run } = args;
    let config = run.read::<SftTable>()?;
    if let Some(count) = run.show {
        return print_rows(&gavel_pipeline::show_sft(&config, count)?, run.json);
    }
    if run.dry_run {
        return print_dry_run(&gavel_pipeline::dry_run_sft(&config, run.planned())?);
    }
    run.start_and_print(|start, peers, control| gavel_pipeline::sft(&config, start, peers, control))
}

pub fn reward_model(args: RewardModelArgs) -> Result<ExitCode> {
    let RewardModelArgs { run } = args;
    let config = run.read::<RewardModelTrainTable>()?;
    if let Some(count) = run.show {
        return print_rows(&gavel_pipeline::show_reward_model(&config, count)?, run.json);
    }
    if run.dry_run {
        return print_dry_run(&gavel_pipeline::dry_run_reward_model(&config, run.planned())?);
    }
    run.start_and_print(|start, peers, control| gavel_pipeline::reward_model(&config, start, peers, control))
}

pub fn dpo(args: DpoArgs) -> Result<ExitCode> {
    let DpoArgs { run } = args;
    let config = run.read::<DpoTable>()?;
    if let Some(count) = run.show {
        return print_rows(&gavel_pipeline::show_dpo(&config, count)?, run.json);
    }
    if run.dry_run {
        return print_dry_run(&gavel_pipeline::dry_run_dpo(&config, run.planned())?);
    }
    run.start_and_print(|start, peers, control| gavel_pipeline::dpo(&config, start, peers, control))
}

/// Whether torchrun has started the ranks again, after one has died.
fn is_again() -> bool {
    matches!(Rendezvous::from_environment(), Ok(Some(rank)) if rank.attempt > 0)
}

/// The level to log at. Rank 0 logs what all ranks do; the others log warnings only.
pub fn log_level(asked: String) -> String {
    match Rendezvous::from_environment() {
        Ok(Some(rank)) if rank.rank > 0 && asked == "info" => "warn".to_owned(),
        _ => asked,
    }
}

fn print_dry_run(DryRun { config, checks, warnings, memory }: &DryRun) -> Result<ExitCode> {
    terminal::data(&format!("{config}\n"))?;
    for Check { what, found } in checks {
        outln!("# ok: {what}: {found}");
    }
    for line in memory.to_string().lines() {
        outln!("# memory, {line}");
    }
    for line in warnings.iter().flat_map(|warning| warning.lines()).chain(memory.warning().unwrap_or_default().lines())
    {
        outln!("# warning: {line}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Counts by kind, each followed by the counts of its details: `3 fault (2 trap, 1 input)`.
fn counted(counts: &BTreeMap<String, u64>) -> String {
    let listed = OutcomeKind::ALL.iter().filter_map(|kind| {
        let count = counts.get(kind.as_str())?;
        let prefix = format!("{}/", kind.as_str());
        let details: Vec<_> = counts
            .iter()
            .filter_map(|(name, count)| Some(format!("{count} {}", name.strip_prefix(&prefix)?)))
            .collect();
        let details = if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
        Some(format!("{count} {}{details}", kind.as_str()))
    });
    let listed = listed.collect::<Vec<_>>().join(", ");
    match counts.get(&format!("caused-by/{}", CausedBy::Response.as_str())) {
        Some(caused) => format!("{listed}; {caused} without a score because of the response"),
        None => listed,
    }
}

fn print_summary(summary: &Summary, json: bool) -> Result<()> {
    if json {
        let summary = serde_json::json!({
            "folder": summary.folder,
            "step": summary.step,
            "accuracy": summary.accuracy.map(|(first, last)| serde_json::json!({"first": first, "last": last})),
            "checkpoint": summary.checkpoint,
            "best": summary.best,
            "outcomes": summary.outcomes,
            "groups": summary.groups,
            "device_wait": summary.device_wait,
            "stopped": summary.is_stopped,
        });
        terminal::json(&summary)?;
        return Ok(());
    }
    let how = if summary.is_stopped { "stopped" } else { "done" };
    errln!("{how} after step {}: {}", summary.step, summary.folder.display());
    if let Some((first, last)) = summary.accuracy {
        errln!("  validation accuracy {:.1} % -> {:.1} %", first * 100.0, last * 100.0);
    }
    if let Some(checkpoint) = &summary.checkpoint {
        errln!("  last checkpoint {}", checkpoint.display());
    }
    if let Some(best) = &summary.best {
        errln!("  best checkpoint {}", best.display());
    }
    for (plugin, counts) in &summary.outcomes {
        errln!("  {plugin}: {}", counted(counts));
    }
    if summary.is_stopped {
        errln!("  to continue: the same command with --resume");
    }
    print_waits(summary);
    Ok(())
}

/// Prints what the device waited for, except for momentary waits.
fn print_waits(Summary { device_wait, longest_waits, .. }: &Summary) {
    let waits: Vec<_> = device_wait.iter().filter(|(_, seconds)| **seconds >= 0.05).collect();
    if waits.is_empty() {
        return;
    }
    errln!("  the device waited for");
    for (name, seconds) in waits {
        errln!("    {name:<30} {seconds:>8.1} s");
    }
    for LongWait { seconds, name, sample } in longest_waits.iter().filter(|wait| wait.seconds >= 0.05) {
        errln!("    once {seconds:.1} s for {name} of sample {sample}");
    }
}

/// Starts a thread that waits for signals. The first Ctrl-C or SIGTERM ends the run after the step under way, the
/// second one ends it at once. SIGUSR1 prints the stacks of all threads and asks what the run waits for. Only the first
/// rank prints a message about its end.
fn listen(control: Control, is_first: bool) -> Result<()> {
    let mut signals =
        signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGUSR1]).context("cannot wait for signals")?;
    #[cfg(target_os = "linux")]
    let stacks = crate::stacks::prepare();
    let wait = move || {
        let mut is_stopping = false;
        for signal in signals.forever() {
            match signal {
                SIGUSR1 => {
                    // Printed here, as the run itself may stand still.
                    #[cfg(target_os = "linux")]
                    match &stacks {
                        Ok(()) => terminal::err_lines(&crate::stacks::text()),
                        Err(error) => errln!("no stacks of threads: {error:#}"),
                    }
                    control.report();
                }
                _ if is_stopping => {
                    // Fails for a signal that has no default, and these have one.
                    let _ = emulate_default_handler(signal);
                }
                _ => {
                    is_stopping = true;
                    if is_first {
                        errln!(
                            "ending after the step under way, with a checkpoint; a second signal ends the run at once"
                        );
                    }
                    control.stop();
                }
            }
        }
    };
    std::thread::Builder::new().name("gavel-signals".into()).spawn(wait).context("cannot wait for signals")?;
    Ok(())
}
