//! `gavel generate`

use crate::environment::prepare_one_team;
use crate::model_args::ModelArgs;
use anyhow::{Context, Result};
use clap::Args;
use gavel::terminal;
use gavel_data::seed::{Purpose, derive};
use gavel_data::{Message, Role};
use gavel_policy::{DrawnToken, Sampling};
use gavel_rollout::{AsyncEngine, Completion, GenerateRequest, WholeCompletion, default_sampling};
use serde_json::{Value, json};
use std::fmt::Display;
use std::process::ExitCode;
use std::sync::Arc;

/// Print a model's responses to a prompt.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  gavel generate -m runs/demo/checkpoints/step-000120 --chat --prompt 'Smallest first, please: 4 0 9 8' --temperature 0\n  gavel generate -m Qwen2.5-0.5B-Instruct --prompt 'Once upon' --n 4 --max-tokens 64 --json"
)]
pub struct GenerateArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// The prompt.
    #[arg(long, value_name = "TEXT")]
    prompt: String,
    /// Render the prompt with the model's chat template, as a message of the user.
    #[arg(long)]
    chat: bool,
    /// The sampling temperature; 0 always takes the most probable token. Options of sampling default to the model's
    /// generation_config.json, or else to temperature 1 and no limit.
    #[arg(long, value_name = "T")]
    temperature: Option<f32>,
    /// Draw only the K most probable tokens; 0 means no limit.
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Draw only the most probable tokens that together reach this probability.
    #[arg(long, value_name = "P")]
    top_p: Option<f32>,
    /// Draw only tokens with at least this share of the most probable token's probability.
    #[arg(long, value_name = "P")]
    min_p: Option<f32>,
    /// Above 1, make tokens that are in the prompt or the response less probable.
    #[arg(long, value_name = "F")]
    repetition_penalty: Option<f32>,
    /// The most tokens of a response; by default as many as generation_config.json sets, or else as there is room for.
    #[arg(long, value_name = "N")]
    max_tokens: Option<usize>,
    /// A text that ends the response and is not part of it; may be repeated.
    #[arg(long, value_name = "TEXT")]
    stop: Vec<String>,
    /// The number of responses.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    n: u32,
    /// The seed of sampling.
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
    /// Show the log-probability of each token.
    #[arg(long)]
    logprobs: bool,
    /// Print a JSON object for each response: text, token_ids, logprobs, finish_reason.
    #[arg(long)]
    json: bool,
}

pub fn run(args: GenerateArgs) -> Result<ExitCode> {
    prepare_one_team()?;
    let engine = args.model.start(Arc::new(()))?;
    let runtime = tokio::runtime::Builder::new_current_thread().build().context("cannot start the runtime")?;
    runtime.block_on(answer(&args, &engine))?;
    Ok(ExitCode::SUCCESS)
}

async fn answer(args: &GenerateArgs, engine: &AsyncEngine) -> Result<()> {
    let text = engine.text();
    let prompt = match args.chat {
        true => text.prompt_ids(&[Message::new(Role::User, args.prompt.as_str())])?,
        false => text.tokenizer.encode_whole(&args.prompt)?,
    };
    let default = default_sampling(&text.tokenizer, engine.room(prompt.len()).max(1));
    let sampling = Sampling {
        temperature: args.temperature.unwrap_or(default.temperature),
        top_k: args.top_k.map_or(default.top_k, |k| Some(k).filter(|k| *k > 0)),
        top_p: args.top_p.unwrap_or(default.top_p),
        min_p: args.min_p.unwrap_or(default.min_p),
        repetition_penalty: args.repetition_penalty.unwrap_or(default.repetition_penalty),
        max_tokens: args.max_tokens.unwrap_or(default.max_tokens),
        ..default
    };
    let (prompt, sampling, stop): (Arc<[u32]>, _, Arc<[String]>) =
        (prompt.into(), Arc::new(sampling), args.stop.clone().into());
    let requests = (0..u64::from(args.n)).map(|index| GenerateRequest {
        prompt: prompt.clone(),
        continues_prompt: !args.chat,
        sampling: sampling.clone(),
        stop: stop.clone(),
        seed: derive(args.seed, 0, index, Purpose::Rollout),
        top_logprobs: 0,
        conversation: None,
    });
    let mut completions = engine.stream(requests.collect()).await?;
    if let (false, false, [only]) = (args.json, args.logprobs, completions.as_mut_slice()) {
        return print_as_it_comes(only).await;
    }
    for (number, completion) in (1..).zip(completions) {
        let ended = completion.whole().await?;
        if args.json {
            terminal::json(&object(&ended))?;
            continue;
        }
        if args.n > 1 {
            print_line(format_args!("== {number} of {} ({})", args.n, ended.finish_reason.as_str()))?;
        }
        print_line(&ended.text)?;
        if args.logprobs {
            ended.tokens.iter().try_for_each(|drawn| print_token(engine, drawn))?;
        }
    }
    Ok(())
}

async fn print_as_it_comes(completion: &mut Completion) -> Result<()> {
    while let Some(piece) = completion.next().await? {
        terminal::data(&piece.text)?;
    }
    print_line("")
}

fn print_token(engine: &AsyncEngine, drawn: &DrawnToken) -> Result<()> {
    let told = engine.text().tokenizer.token_to_text(drawn.token).text;
    print_line(format_args!("{:>9.4}  {told:?}", drawn.logprob))
}

fn print_line(line: impl Display) -> Result<()> {
    terminal::data(&format!("{line}\n"))
}

fn object(ended: &WholeCompletion) -> Value {
    let ids: Vec<u32> = ended.tokens.iter().map(|drawn| drawn.token).collect();
    let logprobs: Vec<f32> = ended.tokens.iter().map(|drawn| drawn.logprob).collect();
    json!({"text": ended.text, "token_ids": ids, "logprobs": logprobs, "finish_reason": ended.finish_reason.as_str()})
}
