//! The arguments of `gavel score`.

use super::reward_models;
use crate::plugin_args::{self, PluginArg};
use clap::Args;
use gavel_data::KnownColumn;
use gavel_endpoint::LimiterTable;
use gavel_plugin::ProgramSpec;
use gavel_scoring::chat::ChatEndpoint;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

/// Score completions from a file with one or more plugins.
///
/// A row has the dataset's columns and a `response` (or `completion`), a text or messages; or else `messages`. Each row
/// gives one row of output, in order. Consecutive rows with the same `id` are a group, which a judger sees as a whole.
/// `reward` is null unless every plugin with a weight scored.
#[derive(Args)]
#[command(
    after_help = "Example:\n  gavel score --plugin answer=exact-answer.wasm --plugin format.wasm:0.1 \\\n      --params format='{\"pattern\": \"Answer: .*\"}' --data completions.jsonl --out scores.jsonl\n  gavel score --plugin judge.wasm --data completions.jsonl --out scores.jsonl --record judged\n  generate | gavel score --plugin answer.wasm --data - --out - | jq .reward\n  gavel score --replay judged --out again.jsonl\n\nExit status: 0 all rows processed, whatever their outcomes; 1 a row could not be read; 2 usage or configuration."
)]
pub struct ScoreArgs {
    /// A component or the folder of a built plugin, its name in the output and its weight in the reward, 1 by default.
    #[arg(long = "plugin", required_unless_present_any = ["replay", "reward_models"], value_name = "[NAME=]PATH[:WEIGHT]")]
    pub plugins: Vec<PluginArg>,
    /// A reward model: a folder, a name on the hub, the http:// address of a server, or a table as in
    /// [reward_model.NAME]: NAME='{ path = "DIR", dtype = "bfloat16" }'. It scores, or answers the plugins that are granted
    /// its name.
    #[arg(long = "reward-model", value_name = "NAME=DIR", value_parser = reward_models::argument)]
    pub reward_models: Vec<(String, String)>,
    /// Parameters of a plugin, a JSON object. With one plugin, its name may be left out.
    #[arg(long, value_name = "[NAME=]JSON", requires = "plugins")]
    pub params: Vec<String>,
    /// What a plugin may reach, as in `[[reward]]`: NAME='{ http = ["https://HOST"] }'.
    #[arg(long = "grant", value_name = "[NAME=]TABLE")]
    pub grants: Vec<String>,
    /// The plugins that a judger waits for, to see their verdicts.
    #[arg(long, value_name = "NAME=OTHER[,OTHER]", requires = "plugins")]
    pub after: Vec<String>,
    /// How many calls an instance answers, for a plugin that declares itself pure: fewer instances start. By default, each
    /// call has a fresh instance. With one plugin, its name may be left out.
    #[arg(long, value_name = "[NAME=]CALLS", requires = "plugins")]
    pub reuse: Vec<String>,
    /// A language model that plugins may be granted, as in [chat.NAME]: NAME='{ base_url = "…", model = "…" }'.
    #[arg(long = "chat", value_name = "NAME=TABLE", value_parser = plugin_args::endpoint)]
    pub chat: Vec<(String, ChatEndpoint)>,
    /// Limits that endpoints and grants name, as in [limiter.NAME].
    #[arg(long = "limiter", value_name = "NAME=TABLE", value_parser = plugin_args::limiter)]
    pub limiters: Vec<(String, LimiterTable)>,
    /// A program that plugins may be granted, as in [exec.NAME].
    #[arg(long = "exec", value_name = "NAME=PATH", value_parser = plugin_args::program)]
    pub programs: Vec<ProgramSpec>,
    /// The completions: a .jsonl or .parquet file, a folder of them, a pattern such as 'out/*.jsonl', or any of these on
    /// the hub, hf://datasets/ORG/NAME/FILES; or - for JSON Lines on stdin.
    #[arg(long, value_name = "PATH", required_unless_present = "replay")]
    pub data: Option<PathBuf>,
    /// The name of a column in the completions, as in [data.columns]: ground_truth=final_answer.
    #[arg(long = "column", value_name = "NAME=COLUMN", requires = "data", value_parser = plugin_args::column)]
    pub columns: Vec<(KnownColumn, String)>,
    /// The file for the scores, JSON Lines; - for stdout.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,
    /// Record the inputs of every verdict in a new folder: the rows, the plugins, and the answers that plugins got from
    /// outside.
    #[arg(long, value_name = "DIR", conflicts_with = "replay")]
    pub record: Option<PathBuf>,
    /// Give plugins only the answers that such a folder has; without --data or --plugin, also take these from it.
    #[arg(long, value_name = "DIR")]
    pub replay: Option<PathBuf>,
    /// Grant recorded plugins what they were granted of this machine: folders, variables, clock and random numbers.
    #[arg(long, requires = "replay")]
    pub allow_grants: bool,
    /// Score Parquet files on a cluster of Ray, by its address, such as auto or 10.0.0.5:6379. --out is a folder; a job that
    /// was interrupted goes on where it stopped. Needs the Python package gavel-rl.
    #[arg(long, value_name = "ADDRESS", requires = "data", conflicts_with_all = ["record", "replay", "reward_models"])]
    pub ray: Option<String>,
    /// Threads that plugins run on; by default one for each core. With --ray, the processors of each worker, by default 1.
    #[arg(long, value_name = "N")]
    pub workers: Option<NonZeroUsize>,
    /// The wall-clock time of one call, waits included.
    #[arg(long, default_value = "10s", requires = "plugins", value_parser = plugin_args::duration)]
    pub timeout: Duration,
    /// The processor time of one call.
    #[arg(long, default_value = "2s", requires = "plugins", value_parser = plugin_args::duration)]
    pub cpu: Duration,
    /// The memory of one call.
    #[arg(long, default_value = "256MiB", requires = "plugins", value_parser = plugin_args::bytes)]
    pub memory: usize,
    /// The instructions of one call; the verdict is the same on every machine, and calls are up to a third slower.
    #[arg(long, value_name = "N", requires = "plugins")]
    pub fuel: Option<u64>,
    /// The seed of the random numbers that plugins see.
    #[arg(long, default_value_t = 0, requires = "data")]
    pub seed: u64,
    /// Print the summary as JSON on stdout.
    #[arg(long)]
    pub json: bool,
}
