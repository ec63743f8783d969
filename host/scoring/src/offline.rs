//! Completions that somebody already has: a dataset's row with a `response`
//! or `messages` beside its columns.

use gavel_data::{Columns, FinishReason, Message, Role, Row, Sample, Shown, Task, TaskError, Trajectory};
use std::sync::Arc;

/// A row without a completion.
#[derive(Debug, thiserror::Error)]
pub enum CompletionError {
    /// The row's other columns are at fault.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// There is nothing to score.
    #[error("the row has neither `response` (a string) nor `messages` (it has: {})", Shown(.0))]
    NoResponse(String),
    /// A response has another form.
    #[error("`response` must be a string, not {}", Shown(.0))]
    BadResponse(String),
    /// Messages have another form.
    #[error("`messages` is not a list of messages {{role, content}}: {}", Shown(.0))]
    BadMessages(String),
    /// Nobody answered.
    #[error("`messages` has no message of the role assistant after the prompt")]
    NoAssistant,
}

/// The sample that a row describes. `messages` may be the whole conversation
/// (the prompt is then what comes before the first answer) or, beside a
/// `prompt`, what follows it.
pub fn completion(row: Row, split: &str) -> Result<Sample, CompletionError> {
    let Row { position, columns, .. } = row;
    let (task, messages) = match (columns.present("response"), columns.present("messages")) {
        (Some(response), _) => {
            let Some(text) = response.string() else {
                return Err(CompletionError::BadResponse(response.as_text().to_owned()));
            };
            let messages = vec![Message::new(Role::Assistant, text)];
            let task = match columns.present("prompt") {
                Some(_) => Task::from_row(columns, position, split)?,
                None => Task::with_prompt(columns, Vec::new(), position, split),
            };
            (task, messages)
        }
        (None, Some(messages)) => {
            let messages = messages.parse().map_err(|error| CompletionError::BadMessages(error.to_string()))?;
            split_conversation(columns, messages, position, split)?
        }
        (None, None) => {
            return Err(CompletionError::NoResponse(columns.names().collect::<Vec<_>>().join(", ")));
        }
    };
    if !messages.iter().any(|message| message.role == Role::Assistant) {
        return Err(CompletionError::NoAssistant);
    }
    let trajectory = Trajectory { messages, tokens: None, finish_reason: FinishReason::Stop };
    Ok(Sample { task: Arc::new(task), index: 0, trajectories: vec![trajectory] })
}

/// Counts the attempts at one task among completions that follow each other.
#[derive(Debug, Default)]
pub struct Attempts(Option<(String, u32)>);

impl Attempts {
    /// Gives the next sample its place in its group: neighbours with one task
    /// id are one.
    pub fn number(&mut self, sample: Sample) -> Sample {
        let id = &sample.task.id;
        let index = match &self.0 {
            Some((last, index)) if last == id => index + 1,
            _ => 0,
        };
        self.0 = Some((id.clone(), index));
        Sample { index, ..sample }
    }
}

fn split_conversation(
    columns: Columns,
    mut messages: Vec<Message>,
    position: usize,
    split: &str,
) -> Result<(Task, Vec<Message>), CompletionError> {
    if columns.present("prompt").is_some() {
        let task = Task::from_row(columns, position, split)?;
        if messages.starts_with(&task.prompt) {
            messages.drain(..task.prompt.len());
        }
        return Ok((task, messages));
    }
    let first = messages.iter().position(|message| message.role == Role::Assistant).unwrap_or(messages.len());
    let answer = messages.split_off(first);
    Ok((Task::with_prompt(columns, messages, position, split), answer))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(json: &str) -> Result<Sample, CompletionError> {
        completion(Row { position: 4, place: "line 5".into(), columns: serde_json::from_str(json).unwrap() }, "data")
    }

    #[test]
    fn a_response_needs_no_prompt() {
        let sample = sample(r#"{"response":"42","answer":"42"}"#).unwrap();
        assert_eq!(sample.response(), "42");
        assert_eq!(sample.task.id, "data/row-4");
        assert_eq!(sample.task.reference.ground_truth.as_deref(), Some("42"));
    }

    #[test]
    fn a_conversation_splits_at_the_first_answer_or_after_the_prompt() {
        let turns = r#"[{"role":"user","content":"q"},{"role":"assistant","content":"a"},{"role":"user","content":"r"},{"role":"assistant","content":"b"}]"#;
        let whole = sample(&format!(r#"{{"messages":{turns}}}"#)).unwrap();
        assert_eq!((whole.task.prompt.len(), whole.trajectories[0].messages.len()), (1, 3));
        let with_prompt = sample(&format!(r#"{{"prompt":"q","messages":{turns}}}"#)).unwrap();
        assert_eq!(with_prompt.trajectories, whole.trajectories);
        let after = sample(r#"{"prompt":"q","messages":[{"role":"assistant","content":"a"}]}"#).unwrap();
        assert_eq!(after.response(), "a");
    }

    #[test]
    fn what_cannot_be_scored_says_why() {
        let error = |json: &str| sample(json).unwrap_err().to_string();
        assert!(error(r#"{"prompt":"q"}"#).contains("it has: prompt"));
        assert!(error(r#"{"response":3}"#).contains("must be a string, not 3"));
        assert!(error(r#"{"messages":[{"role":"user","content":"q"}]}"#).contains("no message of the role assistant"));
    }
}
