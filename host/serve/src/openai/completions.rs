//! `/v1/completions`

use super::body::Body;
use super::error::ApiError;
use super::logprobs::{characters, of_text};
use super::server::{Server, aside, now, usage};
use super::settings::{MOST_LOGPROBS, Settings};
use super::stream::{Progress, events, together};

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures::stream::{self, StreamExt};
use gavel_rollout::Completion;
use gavel_text::{TextError, Tokenizer};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
pub(super) struct CompletionRequest {
    prompt: Prompts,
    echo: Option<bool>,
    /// Whether a text gets the special tokens that the tokenizer puts around texts.
    add_special_tokens: Option<bool>,
    logprobs: Option<usize>,
    /// vLLM's: with 0, the log-probability of each token of the prompt.
    prompt_logprobs: Option<usize>,
    #[serde(flatten)]
    pub(super) settings: Settings,
}

/// Texts or token ids, one prompt or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`prompt` must be a text, token ids, or a list of either")]
enum Prompts {
    Text(String),
    Ids(Vec<u32>),
    Texts(Vec<String>),
    ManyIds(Vec<Vec<u32>>),
}

impl Prompts {
    /// Their tokens. With `whole`, a text gets the special tokens that the tokenizer puts around texts.
    fn encode(self, tokenizer: &Tokenizer, whole: bool) -> Result<Vec<Vec<u32>>, TextError> {
        let encode = |text: String| if whole { tokenizer.encode_whole(&text) } else { tokenizer.encode(&text) };
        match self {
            Self::Text(text) => Ok(vec![encode(text)?]),
            Self::Ids(ids) => Ok(vec![ids]),
            Self::Texts(texts) => texts.into_iter().map(encode).collect(),
            Self::ManyIds(ids) => Ok(ids),
        }
    }
}

pub(super) async fn answer(
    State(server): State<Server>,
    Body(asked): Body<CompletionRequest>,
) -> Result<Response, ApiError> {
    let settings = &asked.settings;
    server.check_model(settings.model.as_deref())?;
    settings.check()?;
    if asked.echo == Some(true) {
        return Err(ApiError::field("echo", "`echo` is not supported: the client has the prompt"));
    }
    if let Some(more) = asked.logprobs.filter(|count| *count > MOST_LOGPROBS) {
        return Err(ApiError::field("logprobs", format!("`logprobs` must be at most {MOST_LOGPROBS}, not {more}")));
    }
    match (asked.prompt_logprobs, settings.stream) {
        (Some(0), Some(true)) => {
            return Err(ApiError::field("prompt_logprobs", "`prompt_logprobs` and `stream` do not go together"));
        }
        (Some(more), _) if more > 0 => {
            let what =
                format!("`prompt_logprobs` must be 0: only the prompt's own tokens are reported, not {more} others");
            return Err(ApiError::field("prompt_logprobs", what));
        }
        _ => {}
    }
    let tokenizer = &server.engine.text().tokenizer;
    let (encoder, whole) = (tokenizer.clone(), asked.add_special_tokens != Some(false));
    let prompts = aside(move || asked.prompt.encode(&encoder, whole)).await??;
    if prompts.is_empty() {
        return Err(ApiError::field("prompt", "`prompt` is empty"));
    }
    let mut of_prompts = Vec::new();
    if asked.prompt_logprobs.is_some() {
        for prompt in &prompts {
            of_prompts.push(server.of_prompt(prompt.clone()).await?);
        }
    }
    let (number, id) = server.next_id("cmpl");
    let prompt_tokens = prompts.iter().map(Vec::len).sum();
    let completions = server.generate(number, prompts, true, settings, asked.logprobs.unwrap_or(0)).await?;
    let base = json!({"id": id, "object": "text_completion", "created": now(), "model": &*server.name});
    if settings.stream == Some(true) {
        let include_usage = settings.include_usage();
        return Ok(streamed(server, base, completions, prompt_tokens, asked.logprobs.is_some(), include_usage));
    }
    let (mut choices, mut drawn, count) = (Vec::new(), 0, completions.len());
    for (index, completion) in completions.into_iter().enumerate() {
        let ended = completion.whole().await?;
        drawn += ended.count;
        let logprobs = asked.logprobs.map(|_| of_text(tokenizer, &ended.tokens, 0));
        let mut choice = json!({"index": index, "text": ended.text, "logprobs": logprobs,
                                "finish_reason": ended.finish_reason.as_str()});
        // The responses to one prompt follow each other.
        if let Some(of_prompt) = of_prompts.get(index * of_prompts.len() / count) {
            choice["prompt_logprobs"] = of_prompt.clone();
        }
        choices.push(choice);
    }
    let mut body = base;
    body["choices"] = choices.into();
    body["usage"] = usage(prompt_tokens, drawn);
    Ok(Json(body).into_response())
}

fn streamed(
    server: Server,
    base: Value,
    completions: Vec<Completion>,
    prompt_tokens: usize,
    logprobs: bool,
    include_usage: bool,
) -> Response {
    let mut offsets = vec![0; completions.len()];
    let mut drawn = 0;
    let chunk = move |choices: Vec<Value>, usage: Value| {
        let mut chunk = base.clone();
        chunk["choices"] = choices.into();
        chunk["usage"] = usage;
        chunk
    };
    let end = chunk.clone();
    let chunks = together(completions).map(Some).chain(stream::iter([None])).filter_map(move |progress| {
        let made = match progress {
            None => include_usage.then(|| Ok(end(Vec::new(), usage(prompt_tokens, drawn)))),
            Some(Err(error)) => Some(Err(error)),
            Some(Ok((index, Progress::Piece(piece)))) => {
                let tokens: Vec<_> = piece.token.into_iter().collect();
                let tokenizer = &server.engine.text().tokenizer;
                let of_tokens = logprobs.then(|| of_text(tokenizer, &tokens, offsets[index]));
                offsets[index] += tokens.iter().map(|drawn| characters(tokenizer, drawn.token)).sum::<usize>();
                let silent = piece.text.is_empty() && (tokens.is_empty() || !logprobs);
                let choice = json!({"index": index, "text": piece.text, "logprobs": of_tokens, "finish_reason": null});
                (!silent).then(|| Ok(chunk(vec![choice], Value::Null)))
            }
            Some(Ok((index, Progress::End(why, count)))) => {
                drawn += count;
                let choice = json!({"index": index, "text": "", "logprobs": null, "finish_reason": why.as_str()});
                Some(Ok(chunk(vec![choice], Value::Null)))
            }
        };
        std::future::ready(made)
    });
    events(chunks)
}
