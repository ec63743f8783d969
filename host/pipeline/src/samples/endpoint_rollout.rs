//! Responses of a server that speaks the chat-completions protocol, scored on the same path as a policy's own.

use crate::error::{PipelineError, Result};
use crate::rows::Seeds;
use futures::future::{join_all, try_join_all};
use gavel_config::RolloutTable;
use gavel_data::{
    FinishReason, Group, KnownTokens, Member, Message, OutcomeKind, Role, Sample, SampleOutcome, Task, Trajectory,
};
use gavel_plugin::ChatError;
use gavel_policy::Sampling;
use gavel_scoring::chat::{ChatClient, ChatCompletion, ChatEndpoint};
use gavel_scoring::{PendingGroup, Scorer};
use serde_json::{Map, Value};
use std::cell::{Cell, OnceCell};
use std::sync::Arc;
use tokio::sync::Semaphore;

const KWARGS: &str = "chat_template_kwargs";

/// A task, with what its row sets for its prompt.
#[derive(Debug, Clone)]
pub(crate) struct Question {
    pub(crate) task: Arc<Task>,
    /// The functions that it offers.
    pub(crate) tools: Vec<Value>,
    /// Variables of the chat template.
    pub(crate) template_kwargs: Map<String, Value>,
}

/// Draws responses from a server and scores them.
pub(crate) struct EndpointRollout<'a> {
    client: ChatClient,
    endpoint: &'a ChatEndpoint,
    scorer: &'a Scorer,
    table: &'a RolloutTable,
    sampling: Sampling,
    /// Called after each sample.
    scored: &'a (dyn Fn() + Sync),
    turns: Semaphore,
    answered: Cell<usize>,
    failed: Cell<usize>,
    /// How many requests failed since the last answer.
    failed_in_a_row: Cell<usize>,
    first_failure: OnceCell<ChatError>,
}

impl<'a> EndpointRollout<'a> {
    /// A rollout that asks `endpoint`, with its name, for responses that are drawn with `sampling` and end as `table`
    /// sets. It calls `scored` after each sample.
    ///
    /// # Errors
    /// A field of the endpoint is wrong, or its key is not set.
    pub(crate) fn new(
        (name, endpoint): &'a (String, ChatEndpoint),
        scorer: &'a Scorer,
        table: &'a RolloutTable,
        sampling: Sampling,
        scored: &'a (dyn Fn() + Sync),
    ) -> Result<Self> {
        let client = ChatClient::new(name, endpoint, scorer.sandbox())
            .map_err(|error| PipelineError::Stopped(error.to_string()))?;
        let turns = Semaphore::new(endpoint.concurrency().get().min(Semaphore::MAX_PERMITS));
        Ok(Self {
            client,
            endpoint,
            scorer,
            table,
            sampling,
            scored,
            turns,
            answered: Cell::default(),
            failed: Cell::default(),
            failed_in_a_row: Cell::default(),
            first_failure: OnceCell::new(),
        })
    }

    /// Draws and scores a group for each question, with a sample for each of the seeds that `seeds` gives for the
    /// question's number.
    ///
    /// # Errors
    /// The server does not answer at all, or has stopped answering.
    pub(crate) async fn draw_all(
        &self,
        questions: &[Question],
        seeds: impl Fn(usize) -> Vec<Seeds>,
    ) -> Result<Vec<Group>> {
        let groups = questions.iter().enumerate().map(|(number, question)| self.group(question, seeds(number)));
        let groups = try_join_all(groups).await?;
        match (self.answered.get(), self.first_failure.get()) {
            (0, Some(error)) => return Err(stopped(error)),
            (answered, Some(error)) => {
                let failed = self.failed.get();
                tracing::warn!("{failed} of {} samples have no response; the first: {error}", answered + failed);
            }
            (_, None) => {}
        }
        Ok(groups)
    }

    /// How many requests failed.
    pub(crate) fn failed(&self) -> usize {
        self.failed.get()
    }

    async fn group(&self, question: &Question, seeds: Vec<Seeds>) -> Result<Group> {
        let responses = try_join_all(seeds.iter().map(|seeds| self.response(question, seeds.sampling))).await?;
        let judged_together = PendingGroup::new(responses.iter().filter(|response| response.is_ok()).count());
        let started = (0..).zip(responses).zip(seeds).map(|((index, response), seeds)| {
            let trajectory = response.as_ref().map_or_else(|_| no_response(), trajectory);
            let task = question.task.clone();
            let sample = Arc::new(Sample::new(task, index, vec![trajectory]));
            let pending = response.map(|_| self.scorer.start(&judged_together, sample.clone(), seeds.plugin));
            (sample, pending)
        });
        // Judges that see all samples wait for the last.
        let started: Vec<_> = started.collect();
        let members = started.into_iter().map(async |(sample, pending)| {
            let outcome = match pending {
                Ok(pending) => pending.outcome().await,
                Err(what) => SampleOutcome::without_calls(OutcomeKind::Unavailable, what),
            };
            (self.scored)();
            Member { sample: Arc::unwrap_or_clone(sample), outcome, advantages: Vec::new() }
        });
        Ok(Group { task: question.task.clone(), members: join_all(members).await })
    }

    /// A response, or why there is none. If as many requests in a row fail as are sent at once, the server is not asked
    /// any more.
    async fn response(&self, question: &Question, seed: u64) -> Result<std::result::Result<ChatCompletion, String>> {
        // It is never closed.
        let _turn = self.turns.acquire().await;
        let error = match self.client.complete(&question.task.prompt, self.options(question, seed)).await {
            Ok(completion) => {
                self.answered.update(|answered| answered + 1);
                self.failed_in_a_row.set(0);
                return Ok(Ok(ended_at_stop_text(completion, &self.table.stop)));
            }
            Err(error) => error,
        };
        let what = error.to_string();
        self.failed.update(|failed| failed + 1);
        self.failed_in_a_row.update(|failed| failed + 1);
        let (failed, first) = (self.failed_in_a_row.get(), self.first_failure.get_or_init(|| error));
        match self.answered.get() {
            _ if failed < self.endpoint.concurrency().get() => Ok(Err(what)),
            0 => Err(stopped(first)),
            _ => Err(PipelineError::Stopped(format!("{failed} requests in a row failed; the last: {what}"))),
        }
    }

    /// The options of a request: the options of `[rollout]`, except options that the endpoint's own `options` set, and
    /// the options of the row, which win.
    fn options(&self, Question { tools, template_kwargs, .. }: &Question, seed: u64) -> Map<String, Value> {
        let sampling = &self.sampling;
        let mut options = Map::new();
        let mut set = |name: &str, value: Value| options.insert(name.to_owned(), value);
        set("temperature", number(sampling.temperature));
        if !self.endpoint.options.contains_key("max_completion_tokens") {
            set("max_tokens", sampling.max_tokens.into());
        }
        if sampling.temperature > 0.0 {
            // Servers hold it in 32 bits, or in 64 with a sign.
            set("seed", (seed >> 33).into());
        }
        if sampling.top_p != 1.0 {
            set("top_p", number(sampling.top_p));
        }
        if let Some(top_k) = sampling.top_k {
            set("top_k", top_k.into());
        }
        if sampling.min_p != 0.0 {
            set("min_p", number(sampling.min_p));
        }
        if sampling.repetition_penalty != 1.0 {
            set("repetition_penalty", number(sampling.repetition_penalty));
        }
        if !sampling.logit_bias.is_empty() {
            let biases = sampling.logit_bias.iter().map(|(token, bias)| (token.to_string(), number(*bias)));
            set("logit_bias", Value::Object(biases.collect()));
        }
        if !tools.is_empty() {
            set("tools", tools.as_slice().into());
        }
        options.retain(|name, _| !self.endpoint.options.contains_key(name));
        if !template_kwargs.is_empty() {
            // The field of vLLM, SGLang and `gavel serve`; a server without it refuses it.
            let mut all = self.endpoint.options.get(KWARGS).and_then(Value::as_object).cloned().unwrap_or_default();
            all.extend(template_kwargs.clone());
            options.insert(KWARGS.to_owned(), all.into());
        }
        options
    }
}

fn trajectory(ChatCompletion { message, finish_reason, tokens }: &ChatCompletion) -> Trajectory {
    let tokens = tokens.map(KnownTokens::Counts);
    Trajectory { tokens, finish_reason: *finish_reason, ..Trajectory::of(vec![message.clone()]) }
}

fn no_response() -> Trajectory {
    Trajectory { finish_reason: FinishReason::Error, ..Trajectory::of(Vec::new()) }
}

/// The number with the digits that it has in 32 bits, not with those that it has in 64 bits.
fn number(value: f32) -> Value {
    value.to_string().parse::<f64>().map_or(Value::Null, Value::from)
}

/// The response up to the end of the stop text that appears in it first, as in training. Servers are not asked to stop
/// there: they leave the stop text out, and most do not report which one it was.
fn ended_at_stop_text(mut completion: ChatCompletion, stop: &[String]) -> ChatCompletion {
    let text = completion.message.text();
    let end = stop.iter().filter_map(|stop| Some(text.find(stop)? + stop.len())).min();
    if let Some(end) = end {
        let reasoning = completion.message.reasoning.take();
        completion.message = Message { reasoning, ..Message::new(Role::Assistant, &text[..end]) };
        completion.finish_reason = FinishReason::Stop;
    }
    completion
}

/// Why nothing was evaluated: the first error of a server that never answered.
fn stopped(error: &ChatError) -> PipelineError {
    let hint = match error {
        ChatError::Refused(_) => {
            "name its model with --endpoint-model, and the variable that holds its key with --endpoint-key-env; `options` of a [chat.NAME] table set other fields of the request"
        }
        _ => "check the address; a [chat.NAME] table, with --endpoint NAME, sets timeout, retries and deadline",
    };
    PipelineError::Stopped(format!("{error}\nhint: {hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_response_ends_with_the_stop_text_that_appears_first() {
        let ended = |text: &str, stop: &[&str]| {
            let message = Message::new(Role::Assistant, text);
            let completion = ChatCompletion { message, finish_reason: FinishReason::Length, tokens: None };
            let stop: Vec<String> = stop.iter().map(|stop| (*stop).to_owned()).collect();
            let ended = ended_at_stop_text(completion, &stop);
            (ended.message.text(), ended.finish_reason)
        };
        assert_eq!(ended("<a>4</a> and", &["nd", "</a>"]), ("<a>4</a>".into(), FinishReason::Stop));
        assert_eq!(ended("<a>4</a>", &["</a>"]), ("<a>4</a>".into(), FinishReason::Stop));
        assert_eq!(ended("<a>4", &["</a>"]), ("<a>4".into(), FinishReason::Length));
        assert_eq!(ended("<a>4", &[]), ("<a>4".into(), FinishReason::Length));
    }

    #[test]
    fn a_number_of_32_bits_is_sent_as_it_was_written() {
        assert_eq!(number(0.7).to_string(), "0.7");
        assert_eq!(number(1e-5).to_string(), "0.00001");
    }
}
