//! `/v1/completions`

use super::body::Body;
use super::error::ApiError;
use super::grammar::AskedGrammar;
use super::logprobs::{characters, of_text};
use super::server::{Server, now, usage};
use super::settings::{MOST_LOGPROBS, Settings};
use super::stream::{Progress, events, together};
use gavel_http::aside;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures::stream::{self, StreamExt};
use gavel_rollout::Completion;
use gavel_text::Tokenizer;
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Deserialize)]
pub(super) struct CompletionRequest {
    pub(super) prompt: Prompts,
    echo: Option<bool>,
    /// Whether a text gets the special tokens that the tokenizer puts around texts.
    add_special_tokens: Option<bool>,
    logprobs: Option<usize>,
    /// vLLM's: with 0, the log-probability of each token of the prompt.
    prompt_logprobs: Option<usize>,
    #[serde(flatten)]
    pub(super) settings: Settings,
}

/// The most values of a body: twice as many as of others, since none becomes a variable of a chat template. So 1,024
/// prompts of 4,000 tokens fit.
const VALUES: usize = 4 << 20;

/// The most tokens of prompts whose log-probabilities are in one answer, each prompt's once. Each takes some 700 bytes in
/// memory.
const MOST_PROMPT_LOGPROBS: usize = 1 << 20;
/// The same, where each prompt's are repeated for several responses: a short request could ask for that.
const MOST_REPEATED_LOGPROBS: usize = 1 << 19;

/// Texts or token ids, one prompt or several.
#[derive(Deserialize)]
#[serde(untagged, expecting = "`prompt` must be a text, token ids, or a list of either")]
pub(super) enum Prompts {
    Text(String),
    Ids(Vec<u32>),
    Texts(Vec<String>),
    ManyIds(Vec<Vec<u32>>),
}

impl Prompts {
    fn count(&self) -> usize {
        match self {
            Self::Text(_) | Self::Ids(_) => 1,
            Self::Texts(texts) => texts.len(),
            Self::ManyIds(ids) => ids.len(),
        }
    }

    /// Their tokens, if `check` accepts the number of each. With `whole`, a text gets the special tokens that the
    /// tokenizer puts around texts. No text is tokenised that cannot have as few as `most` tokens, or that comes after
    /// one that is refused.
    pub(super) fn encode(
        self,
        tokenizer: &Tokenizer,
        whole: bool,
        most: usize,
        check: impl Fn(usize) -> Result<(), ApiError>,
    ) -> Result<Vec<Vec<u32>>, ApiError> {
        let fits = |ids: Vec<u32>| check(ids.len()).map(|()| ids);
        let encode = |text: String| {
            tokenizer.check_bytes(text.len(), most)?;
            fits(if whole { tokenizer.encode_whole(&text) } else { tokenizer.encode(&text) }?)
        };
        match self {
            Self::Text(text) => Ok(vec![encode(text)?]),
            Self::Ids(ids) => Ok(vec![fits(ids)?]),
            Self::Texts(texts) => texts.into_iter().map(encode).collect(),
            Self::ManyIds(ids) => ids.into_iter().map(fits).collect(),
        }
    }
}

/// A request that can be answered.
struct Accepted {
    settings: Settings,
    grammar: Option<AskedGrammar>,
    prompts: Vec<Vec<u32>>,
}

impl CompletionRequest {
    /// Refuses what cannot be answered.
    fn read(self, server: &Server) -> Result<Accepted, ApiError> {
        let settings = self.settings;
        server.check_model(settings.model.as_deref())?;
        settings.check()?;
        let choices = settings.choices(self.prompt.count())?;
        let grammar = settings.grammar()?;
        grammar.iter().try_for_each(|grammar| settings.check_beside(grammar))?;
        if self.echo == Some(true) {
            return Err(ApiError::field("echo", "`echo` is not supported: the client has the prompt"));
        }
        if let Some(more) = self.logprobs.filter(|count| *count > MOST_LOGPROBS) {
            return Err(ApiError::field("logprobs", format!("`logprobs` must be at most {MOST_LOGPROBS}, not {more}")));
        }
        match (self.prompt_logprobs, settings.stream) {
            (Some(0), Some(true)) => {
                return Err(ApiError::field("prompt_logprobs", "`prompt_logprobs` and `stream` do not go together"));
            }
            (Some(more), _) if more > 0 => {
                let what = format!(
                    "`prompt_logprobs` must be 0: only the prompt's own tokens are reported, not {more} others"
                );
                return Err(ApiError::field("prompt_logprobs", what));
            }
            _ => {}
        }
        let (engine, whole) = (&server.engine, self.add_special_tokens != Some(false));
        let check = |tokens| server.check_room(tokens, &settings);
        let prompts = self.prompt.encode(&engine.text().tokenizer, whole, engine.room(0), check)?;
        if prompts.is_empty() {
            return Err(ApiError::field("prompt", "`prompt` is empty"));
        }
        if self.prompt_logprobs.is_some() {
            check_prompt_logprobs(prompts.iter().map(Vec::len).sum(), choices)?;
        }
        Ok(Accepted { settings, grammar, prompts })
    }
}

/// Refuses an answer that would have the log-probabilities of too many tokens of prompts. Each response to a prompt has
/// all of the prompt's.
pub(super) fn check_prompt_logprobs(tokens: usize, choices: usize) -> Result<(), ApiError> {
    let most = if choices == 1 { MOST_PROMPT_LOGPROBS } else { MOST_REPEATED_LOGPROBS };
    let all = tokens * choices;
    if all <= most {
        return Ok(());
    }
    let what = format!("the answer would have `prompt_logprobs` of {all} tokens; at most {most} are allowed");
    Err(ApiError::field("prompt_logprobs", format!("{what}\nhint: send fewer prompts at once")))
}

pub(super) async fn answer(
    State(server): State<Server>,
    Body(asked, size): Body<CompletionRequest, VALUES>,
) -> Result<Response, ApiError> {
    let (logprobs, has_of_prompts) = (asked.logprobs, asked.prompt_logprobs.is_some());
    let of_prompts = server.clone();
    let Accepted { settings, grammar, prompts } = aside(size, move || asked.read(&of_prompts)).await??;
    let constraint = server.constraint(grammar).await?;
    let tokenizer = &server.engine.text().tokenizer;
    let (number, id) = server.next_id("cmpl");
    let prompt_tokens = prompts.iter().map(Vec::len).sum();
    let scored = if has_of_prompts { prompts.clone() } else { Vec::new() };
    // First, since it refuses what the model cannot answer before anything is computed.
    let completions = server.generate(number, prompts, true, &settings, logprobs.unwrap_or(0), constraint).await?;
    let mut of_prompts = Vec::new();
    for prompt in scored {
        of_prompts.push(server.of_prompt(prompt).await?);
    }
    let base = json!({"id": id, "object": "text_completion", "created": now(), "model": &*server.name});
    if settings.stream == Some(true) {
        let include_usage = settings.include_usage();
        return Ok(streamed(server, base, completions, prompt_tokens, logprobs.is_some(), include_usage));
    }
    let (mut choices, mut drawn) = (Vec::new(), 0);
    let of_each = completions.len() / of_prompts.len().max(1);
    for (index, completion) in completions.into_iter().enumerate() {
        let ended = completion.whole().await?;
        drawn += ended.count;
        let logprobs = logprobs.map(|_| of_text(tokenizer, &ended.tokens, 0));
        let mut choice = json!({"index": index, "text": ended.text, "logprobs": logprobs,
                                "finish_reason": ended.finish_reason.as_str()});
        // The responses to one prompt follow each other, and only the last needs no copy.
        if let Some(of_prompt) = of_prompts.get_mut(index / of_each) {
            let is_last = (index + 1).is_multiple_of(of_each);
            choice["prompt_logprobs"] = if is_last { of_prompt.take() } else { of_prompt.clone() };
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
