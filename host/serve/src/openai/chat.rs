//! `/v1/chat/completions`

use super::body::Body;
use super::error::ApiError;
use super::grammar::{AskedGrammar, ToolChoice};
use super::logprobs::of_chat;
use super::server::{Server, now, usage};
use super::settings::{MOST_LOGPROBS, Settings};
use super::stream::{Progress, events, together};
use gavel_http::{Size, aside};
use gavel_policy::DrawnToken;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use futures::stream::{self, Stream, StreamExt};
use gavel_data::{ContentPart, FinishReason, Message, check_template_kwargs};
use gavel_text::{RenderOptions, TextError, TextModel};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;

/// A request for a chat completion.
#[derive(Deserialize)]
pub struct ChatRequest {
    messages: Vec<Message>,
    tools: Option<Vec<Value>>,
    tool_choice: Option<Value>,
    /// Whether a reply may have several calls.
    parallel_tool_calls: Option<bool>,
    logprobs: Option<bool>,
    top_logprobs: Option<usize>,
    /// Variables of the chat template, such as `enable_thinking`.
    chat_template_kwargs: Option<Map<String, Value>>,
    /// A variable of the chat template too.
    reasoning_effort: Option<String>,
    #[serde(flatten)]
    pub(super) settings: Settings,
}

impl ChatRequest {
    /// The conversation so far.
    pub fn messages(&self) -> &[Message] {
        &self.messages
    }

    /// How the response is drawn.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Whether the answer has the log-probabilities of its tokens.
    pub fn has_logprobs(&self) -> bool {
        self.logprobs == Some(true)
    }

    /// How many alternatives of each token the answer has.
    pub fn top_logprobs(&self) -> usize {
        if self.has_logprobs() { self.top_logprobs.unwrap_or(0) } else { 0 }
    }

    /// The variables of the chat template that the request sets.
    pub fn template_variables(&self) -> Map<String, Value> {
        let effort = self.reasoning_effort.iter().map(|effort| ("reasoning_effort".to_owned(), effort.as_str().into()));
        effort.chain(self.chat_template_kwargs.clone().unwrap_or_default()).collect()
    }

    /// The field that binds responses to a grammar, if one does.
    ///
    /// # Errors
    /// A field that does has another form.
    pub fn grammar_field(&self, tools: &[Value]) -> Result<Option<&'static str>, ApiError> {
        Ok(self.grammar(tools)?.map(|grammar| grammar.field))
    }

    /// How replies to it are written. `tools` are the tools that the model may call, and calls are numbered from
    /// `calls_before` on.
    pub fn replies(&self, tools: Vec<Value>, text: &TextModel, calls_before: usize) -> Replies {
        let calls = !tools.is_empty() && text.template.tool_call_format().is_some();
        let most_calls = if self.parallel_tool_calls == Some(false) { 1 } else { usize::MAX };
        Replies { tools, calls, calls_before, most_calls, logprobs: self.has_logprobs(), stops: self.settings.stop() }
    }

    /// Refuses fields that would be ignored, and gives the tools that the model may call.
    ///
    /// # Errors
    /// The first of these fields.
    pub fn check(&self) -> Result<Vec<Value>, ApiError> {
        if self.messages.is_empty() {
            return Err(ApiError::field("messages", "`messages` is empty"));
        }
        if let Some(Err(what)) = self.chat_template_kwargs.as_ref().map(check_template_kwargs) {
            return Err(ApiError::field("chat_template_kwargs", what));
        }
        let media = |part: &ContentPart| matches!(part, ContentPart::Media(_));
        if self.messages.iter().any(|message| message.content.iter().any(media)) {
            return Err(ApiError::field("messages", "only text is supported, but a message has an attachment"));
        }
        if self.top_logprobs.is_some_and(|count| count > 0) && self.logprobs != Some(true) {
            return Err(ApiError::field("top_logprobs", "`top_logprobs` needs `logprobs`: true"));
        }
        if let Some(more) = self.top_logprobs.filter(|count| *count > MOST_LOGPROBS) {
            let what = format!("`top_logprobs` must be at most {MOST_LOGPROBS}, not {more}");
            return Err(ApiError::field("top_logprobs", what));
        }
        ToolChoice::of(self.tool_choice.as_ref())?.shown(self.tools.as_deref().unwrap_or_default())
    }

    /// The grammar that responses are bound to, if there is one.
    fn grammar(&self, tools: &[Value]) -> Result<Option<AskedGrammar>, ApiError> {
        let of_calls = ToolChoice::of(self.tool_choice.as_ref())?.grammar(tools);
        let asked = match (of_calls, self.settings.grammar()?) {
            (Some(_), Some(other)) => {
                let what = format!("`tool_choice` and `{}` do not go together", other.field);
                return Err(ApiError::field(
                    "tool_choice",
                    format!("{what}: a reply that must call has no other text"),
                ));
            }
            (of_calls, other) => of_calls.or(other),
        };
        asked.iter().try_for_each(|asked| self.settings.check_beside(asked))?;
        Ok(asked)
    }

    /// The tokens of the prompt, of which at most `most` fit.
    fn prompt(&self, tools: &[Value], text: &TextModel, most: usize) -> Result<Vec<u32>, TextError> {
        let options = RenderOptions { variables: self.template_variables(), ..RenderOptions::prompt(tools) };
        text.prompt_ids_within(&self.messages, &options, most)
    }
}

pub(super) async fn answer(
    State(server): State<Server>,
    Body(asked, size): Body<ChatRequest>,
) -> Result<Response, ApiError> {
    complete(server, asked, size).await
}

/// The tokens of the prompt of a request.
pub(super) async fn count(server: &Server, asked: ChatRequest, size: Size) -> Result<usize, ApiError> {
    let server = server.clone();
    let count = move || {
        server.check_model(asked.settings.model.as_deref())?;
        asked.settings.check()?;
        let tools = asked.check()?;
        Ok::<_, ApiError>(asked.prompt(&tools, server.engine.text(), server.engine.room(0))?.len())
    };
    aside(size, count).await?
}

/// Answers a request.
pub(super) async fn complete(server: Server, asked: ChatRequest, size: Size) -> Result<Response, ApiError> {
    let of_prompt = server.clone();
    let read = move || {
        of_prompt.check_model(asked.settings.model.as_deref())?;
        asked.settings.check()?;
        asked.settings.choices(1)?;
        let tools = asked.check()?;
        let grammar = asked.grammar(&tools)?;
        let prompt = asked.prompt(&tools, of_prompt.engine.text(), of_prompt.engine.room(0))?;
        Ok::<_, ApiError>((asked, tools, grammar, prompt))
    };
    let (asked, tools, grammar, prompt) = aside(size, read).await??;
    server.check_room(prompt.len(), &asked.settings)?;
    let constraint = server.constraint(grammar).await?;
    let (settings, text) = (&asked.settings, server.engine.text());
    let prompt_tokens = prompt.len();
    let (number, id) = server.next_id("chatcmpl");
    let completions = server.generate(number, vec![prompt], false, settings, asked.top_logprobs(), constraint).await?;
    let calls_before = asked.messages.iter().map(|message| message.tool_calls.len()).sum();
    let replies = asked.replies(tools, text, calls_before);
    let base = json!({"id": id, "created": now(), "model": &*server.name});
    if settings.stream == Some(true) {
        let (text, count, include_usage) = (server.engine.shared_text(), completions.len(), settings.include_usage());
        return Ok(replies.stream(text, base, count, together(completions), prompt_tokens, include_usage));
    }
    let (mut choices, mut drawn) = (Vec::new(), 0);
    for completion in completions {
        let ended = completion.whole().await?;
        drawn += ended.count;
        let ids = ended.tokens.iter().map(|drawn| drawn.token).collect();
        let message = replies.message(text, Whole { text: ended.text, ids })?;
        choices.push(replies.choice(text, choices.len(), message, &ended.tokens, ended.finish_reason));
    }
    Ok(Json(completion(base, choices, prompt_tokens, drawn)).into_response())
}

/// The body of an answer that is not streamed, with the fields of `base`.
pub fn completion(base: Value, choices: Vec<Value>, prompt_tokens: usize, drawn: usize) -> Value {
    let mut body = base;
    body["object"] = "chat.completion".into();
    body["choices"] = choices.into();
    body["usage"] = usage(prompt_tokens, drawn);
    body
}

/// A reply as it was drawn.
#[derive(Clone, Default)]
pub struct Whole {
    /// Its text, without a stop text.
    pub text: String,
    /// Its tokens.
    pub ids: Vec<u32>,
}

/// How replies are written.
#[derive(Clone)]
pub struct Replies {
    tools: Vec<Value>,
    /// Whether the model may call them.
    calls: bool,
    calls_before: usize,
    /// The calls of a reply that are told, as in vLLM.
    most_calls: usize,
    logprobs: bool,
    /// The stop texts.
    stops: Arc<[String]>,
}

impl Replies {
    /// The stop text that ended a response of these tokens.
    fn stop_text(&self, model: &TextModel, ended: FinishReason, ids: &[u32]) -> Option<&str> {
        if self.stops.is_empty() || ended != FinishReason::Stop {
            return None;
        }
        let drawn = model.tokenizer.decode(ids).ok()?;
        let found = self.stops.iter().filter(|stop| !stop.is_empty());
        // A response ends at the first one.
        let found = found.filter_map(|stop| Some((drawn.find(stop.as_str())?, stop.as_str())));
        found.min_by_key(|(at, _)| *at).map(|(_, stop)| stop)
    }

    /// A choice of an answer that is not streamed: the message that [`message`](Self::message) gave, and its tokens.
    pub fn choice(
        &self,
        model: &TextModel,
        index: usize,
        (message, called): (Value, bool),
        tokens: &[DrawnToken],
        ended: FinishReason,
    ) -> Value {
        let logprobs = self.logprobs.then(|| of_chat(&model.tokenizer, tokens));
        let mut choice =
            json!({"index": index, "message": message, "logprobs": logprobs, "finish_reason": why(ended, called)});
        let ids: Vec<u32> = tokens.iter().map(|drawn| drawn.token).collect();
        tell_stop(&mut choice, self.stop_text(model, ended, &ids));
        choice
    }

    /// The assistant's message, and whether it calls tools.
    ///
    /// # Errors
    /// Its tokens cannot be decoded.
    pub fn message(&self, model: &TextModel, whole: Whole) -> Result<(Value, bool), TextError> {
        let reply = match self.calls {
            true => Some(model.reply(&whole.ids, whole.text.clone(), &self.tools, self.calls_before)?),
            false => None,
        };
        Ok(match reply.filter(|reply| !reply.tool_calls.is_empty()) {
            Some(reply) => {
                let calls: Vec<Value> = reply
                    .tool_calls
                    .iter()
                    .take(self.most_calls)
                    .map(|call| {
                        json!({"id": call.id, "type": "function",
                               "function": {"name": call.name, "arguments": call.arguments}})
                    })
                    .collect();
                let content = if reply.content.is_empty() { Value::Null } else { reply.content.into() };
                let mut message = json!({"role": "assistant", "content": content, "tool_calls": calls});
                if let Some(reasoning) = reply.reasoning {
                    message["reasoning_content"] = reasoning.into();
                }
                (message, true)
            }
            None => (json!({"role": "assistant", "content": whole.text}), false),
        })
    }

    /// An answer of `count` choices as it comes, with the fields of `base` in each of its parts.
    pub fn stream<E: Into<ApiError> + Send + 'static>(
        self,
        text: impl AsRef<TextModel> + Send + 'static,
        base: Value,
        count: usize,
        progress: impl Stream<Item = Result<(usize, Progress), E>> + Send + 'static,
        prompt_tokens: usize,
        include_usage: bool,
    ) -> Response {
        let chunk = move |choices: Vec<Value>, usage: Value| {
            let mut chunk = base.clone();
            chunk["object"] = "chat.completion.chunk".into();
            chunk["choices"] = choices.into();
            chunk["usage"] = usage;
            chunk
        };
        let delta = |index: usize, delta: Value, logprobs: Option<Value>, reason: Option<&str>| json!({"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason});
        let roles = (0..count)
            .map(|index| delta(index, json!({"role": "assistant", "content": ""}), None, None))
            .map(|choice| Ok::<_, ApiError>(chunk(vec![choice], Value::Null)))
            .collect::<Vec<_>>();
        let mut drawn = 0;
        // Whether a reply calls tools is known only at its end.
        let mut whole = self.calls.then(|| vec![Whole::default(); count]);
        // The stop text is found among all tokens.
        let mut ids = (!self.stops.is_empty()).then(|| vec![Vec::new(); count]);
        let chunks = progress.map(Some).chain(stream::iter([None])).map(move |progress| match progress {
            None if include_usage => vec![Ok(chunk(Vec::new(), usage(prompt_tokens, drawn)))],
            None => Vec::new(),
            Some(Err(error)) => vec![Err(error.into())],
            Some(Ok((index, Progress::Piece(piece)))) => {
                let tokens: Vec<_> = piece.token.into_iter().collect();
                if let Some(ids) = &mut ids {
                    ids[index].extend(tokens.iter().map(|drawn| drawn.token));
                }
                let told = self.logprobs && !tokens.is_empty();
                let logprobs = told.then(|| of_chat(&text.as_ref().tokenizer, &tokens));
                let text = match &mut whole {
                    Some(whole) => {
                        whole[index].text.push_str(&piece.text);
                        whole[index].ids.extend(tokens.iter().map(|drawn| drawn.token));
                        String::new()
                    }
                    None => piece.text,
                };
                match text.is_empty() && logprobs.is_none() {
                    true => Vec::new(),
                    false => {
                        let choice = delta(index, json!({"content": text}), logprobs, None);
                        vec![Ok(chunk(vec![choice], Value::Null))]
                    }
                }
            }
            Some(Ok((index, Progress::End(reason, count)))) => {
                drawn += count;
                let mut choices = Vec::new();
                let mut called = false;
                if let Some(whole) = &mut whole {
                    let whole = std::mem::take(&mut whole[index]);
                    let (mut message, calls) = match self.message(text.as_ref(), whole) {
                        Ok(told) => told,
                        Err(error) => return vec![Err(error.into())],
                    };
                    called = calls;
                    // The role was sent at the beginning, and clients concatenate what they get.
                    message.as_object_mut().and_then(|message| message.remove("role"));
                    if let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
                        // Each call of a delta has the index of the call.
                        calls.iter_mut().zip(0..).for_each(|(call, at)| call["index"] = at.into());
                    }
                    choices.push(delta(index, message, None, None));
                }
                let ids = ids.as_mut().map(|ids| std::mem::take(&mut ids[index])).unwrap_or_default();
                let stop = self.stop_text(text.as_ref(), reason, &ids);
                let mut last = delta(index, json!({}), None, Some(why(reason, called)));
                tell_stop(&mut last, stop);
                choices.push(last);
                choices.into_iter().map(|choice| Ok(chunk(vec![choice], Value::Null))).collect()
            }
        });
        events(stream::iter(roles).chain(chunks.flat_map(stream::iter)))
    }
}

/// Says which stop text ended a choice, as vLLM does.
fn tell_stop(choice: &mut Value, stop: Option<&str>) {
    if let Some(stop) = stop {
        choice["stop_reason"] = stop.into();
    }
}

/// `finish_reason`, in the API's words.
fn why(ended: FinishReason, called: bool) -> &'static str {
    if called { "tool_calls" } else { ended.as_str() }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Bytes as tokens, and a template that shows how to call tools.
    fn model() -> TextModel {
        let folder = tempfile::tempdir().unwrap();
        TextModel::byte_level().save(folder.path()).unwrap();
        let template = "{% if tools %}Answer or say <tool_call>{json}</tool_call>: {{ tools | tojson }}\n{% endif %}\
                        {% for message in messages %}{{ message.content }}\n{% endfor %}";
        std::fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
        TextModel::load(folder.path()).unwrap()
    }

    fn told(model: &TextModel, text: &str, tools: &[Value]) -> (Value, bool) {
        told_to(json!({"messages": []}), model, text, tools)
    }

    fn told_to(asked: Value, model: &TextModel, text: &str, tools: &[Value]) -> (Value, bool) {
        let asked: ChatRequest = serde_json::from_value(asked).unwrap();
        let replies = asked.replies(tools.to_vec(), model, 2);
        let ids = model.tokenizer.encode(text).unwrap();
        replies.message(model, Whole { text: text.to_owned(), ids }).unwrap()
    }

    #[test]
    fn calls_in_a_reply_are_told_where_tools_were_given() {
        let model = model();
        let tools = [json!({"type": "function", "function": {"name": "add", "parameters": {}}})];
        let reply = "I add.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 2}}\n</tool_call>";
        let (message, called) = told(&model, reply, &tools);
        assert!(called);
        assert_eq!(message["content"], "I add.");
        assert_eq!(message["tool_calls"][0]["id"], "call00002");
        assert_eq!(message["tool_calls"][0]["function"]["name"], "add");
        let arguments: Value =
            serde_json::from_str(message["tool_calls"][0]["function"]["arguments"].as_str().unwrap()).unwrap();
        assert_eq!(arguments, json!({"a": 2}));

        // Marks within an argument are text.
        let value = "</tool_call> <think> </think> <tool_call>";
        let call = json!({"name": "add", "arguments": {"a": value}});
        let (message, called) = told(&model, &format!("I add.\n<tool_call>\n{call}\n</tool_call>"), &tools);
        assert!(called && message["content"] == "I add.");
        assert_eq!(message["tool_calls"][0]["function"]["arguments"], json!({"a": value}).to_string());

        // Where several calls are not wanted, the first is told.
        let two = format!("{reply}\n{}", reply.replace("I add.\n", "").replace('2', "3"));
        let calls = |asked: Value| told_to(asked, &model, &two, &tools).0["tool_calls"].as_array().unwrap().clone();
        let (all, one) = (calls(json!({"messages": []})), calls(json!({"messages": [], "parallel_tool_calls": false})));
        assert_eq!((all.len(), &all[..1]), (2, &one[..]));

        assert_eq!(told(&model, reply, &[]), (json!({"role": "assistant", "content": reply}), false));
        assert_eq!(told(&model, "5", &tools), (json!({"role": "assistant", "content": "5"}), false));
        let options = RenderOptions::prompt(&tools);
        let prompt = model.template.render(&[Message::new(gavel_data::Role::User, "2 + 3?")], &options).unwrap();
        assert!(prompt.starts_with("Answer or say") && prompt.contains("\"name\": \"add\""), "{prompt}");
    }
}
