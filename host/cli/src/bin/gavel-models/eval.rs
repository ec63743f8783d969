//! `gavel eval`

use crate::environment::prepare_one_team;
use crate::train::ConfigArgs;
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use gavel::outcomes::Outcomes;
use gavel::progress;
use gavel::table;
use gavel::terminal::{self, errln, outln};
use gavel_config::Config;
use gavel_data::dataset::{check_writable, write_rows};
use gavel_data::{Group, ShownLines};
use gavel_pipeline::{EvalOptions, EvalProgress, Evaluated, RIGHT, SourceNumbers, evaluate, generations};
use gavel_scoring::chat::ChatEndpoint;
use indicatif::ProgressBar;
use serde_json::json;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::time::Duration;

/// The time of one attempt and of all attempts, for an endpoint that is named by its address. A long answer of a busy
/// server takes minutes.
const ENDPOINT_TIMEOUT: Duration = Duration::from_secs(600);
const ENDPOINT_DEADLINE: Duration = Duration::from_secs(3600);

/// Answer the validation set and score the answers.
///
/// The model is the one of the configuration, a checkpoint, or a model behind an OpenAI-compatible endpoint. One answer to
/// each row is greedy; several are sampled, and give pass@k. The configuration may leave out `[model]`, `[train]` and
/// `data.train`.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  gavel eval -c run.toml --checkpoint runs/demo/checkpoints/step-000060\n  gavel eval -c run.toml --data gsm8k-test.parquet --data math-500.parquet --samples 8 --out answers.parquet\n  gavel eval -c run.toml --endpoint https://api.openai.com/v1 --endpoint-model gpt-4.1-mini --endpoint-key-env OPENAI_API_KEY\n  gavel score --plugin other.wasm --data answers.parquet --out scores.jsonl"
)]
pub struct EvalArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// The checkpoint in place of the configuration's model: a folder, or a model of the Hugging Face hub.
    #[arg(long, value_name = "DIR", conflicts_with = "endpoint")]
    checkpoint: Option<PathBuf>,
    /// A server in place of the configuration's model: the address of its OpenAI API, such as http://127.0.0.1:8000/v1, or the NAME of a
    /// [chat.NAME] table.
    #[arg(long, value_name = "URL|NAME")]
    endpoint: Option<String>,
    /// The model to ask the endpoint for.
    #[arg(long, value_name = "MODEL", requires = "endpoint")]
    endpoint_model: Option<String>,
    /// The environment variable that holds the endpoint's key.
    #[arg(long, value_name = "VAR", requires = "endpoint")]
    endpoint_key_env: Option<String>,
    /// A dataset, in place of data.validation; may be repeated.
    #[arg(long, value_name = "PATH")]
    data: Vec<String>,
    /// Answers to each row, in place of data.validation_samples.
    #[arg(short = 'n', long, value_name = "N")]
    samples: Option<usize>,
    /// The temperature, in place of rollout.temperature; 0 is greedy, which is the default for one answer.
    #[arg(long, value_name = "T")]
    temperature: Option<f32>,
    /// Save each answer with its row, reward and outcomes, as .jsonl or .parquet; `gavel score` reads them.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

pub fn run(args: EvalArgs) -> Result<ExitCode> {
    let mut settings = args.config.settings.clone();
    if !args.data.is_empty() {
        settings.push(format!("data.validation={}", toml::Value::from(args.data.clone())));
    }
    settings.extend(args.samples.map(|samples| format!("data.validation_samples={samples}")));
    let config = args.config.read::<toml::Table>(&settings)?;
    if let Some(out) = &args.out {
        check_writable(out)?;
        let mut datasets = config.data.validation.iter().flat_map(|datasets| &datasets.0);
        let is_out = |path: &Path| path.canonicalize().ok().zip(out.canonicalize().ok()).is_some_and(|(a, b)| a == b);
        if datasets.any(|dataset| is_out(dataset.path.path())) {
            bail!("--out {} is the dataset that is evaluated on", out.display());
        }
    }
    let endpoint = args.endpoint.as_ref().map(|endpoint| self::endpoint(&args, endpoint, &config)).transpose()?;
    if endpoint.is_none() {
        prepare_one_team()?;
    }
    let options = EvalOptions { checkpoint: args.checkpoint, endpoint, temperature: args.temperature };
    let bar = OnceLock::new();
    let evaluated = evaluate(&config, &options, &|progress| match progress {
        EvalProgress::Started(answers) => {
            bar.get_or_init(|| progress::bar(Some(answers as u64), "answers"));
        }
        EvalProgress::Scored => bar.get().into_iter().for_each(|bar: &ProgressBar| bar.inc(1)),
    });
    bar.get().into_iter().for_each(ProgressBar::finish_and_clear);
    let evaluated = evaluated?;
    if let Some(out) = &args.out {
        save(out, &evaluated)?;
    }
    if args.json {
        terminal::json(evaluated.metrics.as_json())?;
        check_rewarded(&config, &evaluated.groups)?;
        return Ok(ExitCode::SUCCESS);
    }
    print(&evaluated, config.data.validation_samples);
    if let Some(line) = config.accuracy_reward().and_then(|reward| nothing_right(&evaluated.groups, reward)) {
        outln!("  {line}");
    }
    check_rewarded(&config, &evaluated.groups)?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses an evaluation in which no answer has a reward: it has no result.
fn check_rewarded(config: &Config<toml::Table>, groups: &[Group]) -> Result<()> {
    let mut members = groups.iter().flat_map(|group| &group.members).peekable();
    let Some(first) = members.peek().map(|member| member.outcome.reason.clone()) else { return Ok(()) };
    if !config.reward.iter().any(|reward| reward.weight != 0.0) || members.any(|member| member.outcome.reward.is_some())
    {
        return Ok(());
    }
    let reason = first.map(|reason| format!("; the first: {}", ShownLines(&reason))).unwrap_or_default();
    bail!("no answer has a reward{reason}\nhint: look at the `reason` of each answer, which --out FILE saves")
}

/// The endpoint of the arguments, and its name in errors.
fn endpoint(args: &EvalArgs, named: &str, config: &Config<toml::Table>) -> Result<(String, ChatEndpoint)> {
    if let Some(endpoint) = config.chat.get(named) {
        let mut endpoint = endpoint.clone();
        endpoint.model = args.endpoint_model.clone().unwrap_or(endpoint.model);
        endpoint.api_key_env = args.endpoint_key_env.clone().or(endpoint.api_key_env);
        return Ok((named.to_owned(), endpoint));
    }
    if !named.contains("://") {
        let known = config.chat.keys().cloned().collect::<Vec<_>>().join(", ");
        let known = if known.is_empty() { "none" } else { &known };
        bail!(
            "--endpoint {named} is neither an address such as http://127.0.0.1:8000/v1 nor a [chat.NAME] (those are: {known})"
        );
    }
    let Some(model) = &args.endpoint_model else {
        bail!("--endpoint needs a model\nhint: name it with --endpoint-model");
    };
    if let Some(variable) = args.endpoint_key_env.as_ref().filter(|variable| std::env::var_os(variable).is_none()) {
        bail!("--endpoint-key-env {variable}: the variable is not set\nhint: set it where gavel is started");
    }
    let table = json!({"base_url": named, "model": model, "api_key_env": args.endpoint_key_env});
    let endpoint: ChatEndpoint = serde_json::from_value(table).context("--endpoint")?;
    endpoint.check().map_err(|what| anyhow!("--endpoint: {what}"))?;
    Ok(("endpoint".into(), ChatEndpoint { timeout: ENDPOINT_TIMEOUT, deadline: ENDPOINT_DEADLINE, ..endpoint }))
}

/// Saves the answers. If Parquet cannot hold them, they are saved beside it as JSON Lines, so that they are not lost.
fn save(out: &Path, evaluated: &Evaluated) -> Result<()> {
    let rows = generations(&evaluated.groups);
    let Err(error) = write_rows(out, &rows) else {
        let answers = if rows.len() == 1 { "answer" } else { "answers" };
        errln!("{} {answers} -> {}", rows.len(), out.display());
        return Ok(());
    };
    let lines = out.with_extension("jsonl");
    if out.extension().is_none_or(|kind| kind != "parquet") || write_rows(&lines, &rows).is_err() {
        return Err(error.into());
    }
    tracing::warn!("{} answers are in {}: {error}", rows.len(), lines.display());
    Ok(())
}

fn print(Evaluated { metrics, sources, groups }: &Evaluated, samples: usize) {
    print_sources(sources, samples);
    let is_elsewhere = |name: &str| {
        let of_source = |SourceNumbers { source, .. }: &SourceNumbers| name.starts_with(&format!("val/{source}/"));
        name.starts_with("val/outcome/") || sources.iter().any(of_source)
    };
    for (name, value) in metrics.as_json().iter().filter(|(name, _)| !is_elsewhere(name)) {
        match value.as_f64().filter(|_| value.is_f64()) {
            Some(number) => outln!("  {name:<24}  {number:.4}"),
            None => outln!("  {name:<24}  {value}"),
        }
    }
    let mut outcomes = Outcomes::default();
    groups.iter().flat_map(|group| &group.members).for_each(|member| outcomes.add(&member.outcome));
    outcomes.lines().for_each(|line| outln!("  {line}"));
}

/// A line to print if no answer is right by the score of `reward`, which decides that.
fn nothing_right(groups: &[Group], reward: &str) -> Option<String> {
    let members = groups.iter().flat_map(|group| &group.members);
    let scores = members.filter_map(|member| member.outcome.plugins.get(reward)?.outcome.score());
    let highest = scores.reduce(f64::max).filter(|highest| *highest < RIGHT)?;
    Some(format!("no score of `{reward}` reached {RIGHT}, which counts as a pass; the highest is {highest}"))
}

fn print_sources(sources: &[SourceNumbers], samples: usize) {
    let sizes: BTreeSet<usize> = sources.iter().flat_map(|source| &source.pass).map(|(k, _)| *k).collect();
    let mut header = vec!["data source".to_owned(), "rows".into(), format!("mean@{samples}")];
    header.extend(sizes.iter().map(|k| format!("pass@{k}")));
    header.extend((samples > 1).then(|| format!("best@{samples}")));
    let has_majority = samples > 1 && sources.iter().any(|source| !source.majority.is_empty());
    header.extend(has_majority.then(|| format!("maj@{samples}")));
    let rows = sources.iter().map(|source| {
        let mut row = vec![source.source.clone(), source.rows.to_string(), number(source.mean)];
        row.extend(sizes.iter().map(|k| percent(at(&source.pass, *k))));
        row.extend((samples > 1).then(|| number(at(&source.best, samples))));
        row.extend(has_majority.then(|| percent(at(&source.majority, samples))));
        row
    });
    table::print_rows(&header, rows);
}

fn at(values: &[(usize, f64)], size: usize) -> Option<f64> {
    values.iter().find(|(k, _)| *k == size).map(|(_, value)| *value)
}

fn number(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{value:.3}"))
}

fn percent(value: Option<f64>) -> String {
    value.map_or_else(|| "-".into(), |value| format!("{:.1} %", value * 100.0))
}
