//! Scoring of existing completions: rows of a dataset with a `response`, a
//! `completion` or `messages` beside their columns.

use gavel_data::{Columns, Json, Message, Role, Row, Sample, Shown, Task, TaskError, Trajectory};
use std::sync::Arc;

/// A row without a completion.
#[derive(Debug, thiserror::Error)]
pub enum CompletionError {
    /// The row is not a task.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The row has no response.
    #[error("the row has none of `response`, `completion` and `messages` (it has: {})", Shown(.0))]
    NoResponse(String),
    /// A response has a form that is not supported.
    #[error("`{column}` is neither a string nor a list of messages {{role, content}}: {}", Shown(.what))]
    BadResponse {
        /// `response` or `completion`.
        column: &'static str,
        /// What is wrong.
        what: String,
    },
    /// `messages` has a form that is not supported.
    #[error("`messages` is not a list of messages {{role, content}}: {}", Shown(.0))]
    BadMessages(String),
    /// The messages have no answer.
    #[error("the row has no message of the role assistant after the prompt")]
    NoAssistant,
}

/// The columns that hold a response: Gavel's name, and TRL's.
const RESPONSES: [&str; 2] = ["response", "completion"];

/// Whether a row has the columns that [`completion`] needs, in any form.
pub fn has_completion(columns: &Columns) -> bool {
    let answers = |messages: &Json| match messages.parse::<Vec<Message>>() {
        Ok(messages) => messages.iter().any(|message| message.role == Role::Assistant),
        // `completion` reports what is wrong.
        Err(_) => true,
    };
    RESPONSES.into_iter().any(|name| columns.present(name).is_some())
        || columns.present("messages").is_some_and(answers)
}

/// The sample of a row: its `response` or `completion`, a string or messages, or else its `messages`. Beside a
/// `prompt`, `messages` follow the prompt. Without one they are the whole conversation, and the prompt ends before the
/// first answer. `split` is part of the id of a row that has neither an id nor a split.
pub fn completion(row: Row, split: &str) -> Result<Sample, CompletionError> {
    let Row { position, columns, .. } = row;
    // A file of completions can have rows of several splits.
    let given = columns.present("extra_info").and_then(|extra| extra.present("split")?.string());
    let split = given.as_deref().unwrap_or(split);
    let response = RESPONSES.into_iter().find_map(|name| Some((name, columns.present(name)?)));
    let (task, messages) = match (response, columns.present("messages")) {
        (Some((column, response)), _) => {
            let messages = match response.string() {
                Some(text) => vec![Message::new(Role::Assistant, text)],
                None => response
                    .parse()
                    .map_err(|error| CompletionError::BadResponse { column, what: error.to_string() })?,
            };
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
    let trajectory = Trajectory::of(messages);
    Ok(Sample::new(Arc::new(task), 0, vec![trajectory]))
}

/// Numbers the attempts at the same task among successive completions.
#[derive(Debug, Default)]
pub struct Attempts(Option<(String, u32)>);

impl Attempts {
    /// Gives the next sample its index in its group. Successive samples with the
    /// same task id are a group.
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
    fn rows_of_two_splits_have_two_names() {
        let row = |split: &str| format!(r#"{{"response":"4","extra_info":{{"index":7,"split":"{split}"}}}}"#);
        let id = |split: &str| sample(&row(split)).unwrap().task.id.clone();
        assert_eq!([id("train"), id("test")], ["train/7", "test/7"]);
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
    fn a_completion_of_trl_is_a_text_or_messages() {
        let text = sample(r#"{"prompt":"q","completion":"a"}"#).unwrap();
        assert_eq!((text.task.prompt.len(), text.response().as_str()), (1, "a"));
        let turns =
            r#"[{"role":"assistant","content":"a"},{"role":"tool","content":"1"},{"role":"assistant","content":"b"}]"#;
        let messages =
            sample(&format!(r#"{{"prompt":[{{"role":"user","content":"q"}}],"completion":{turns}}}"#)).unwrap();
        assert_eq!((messages.trajectories[0].messages.len(), messages.response().as_str()), (3, "b"));
        assert_eq!(sample(r#"{"prompt":"q","response":"a","completion":"b"}"#).unwrap().response(), "a");
    }

    #[test]
    fn a_conversation_without_an_answer_is_no_completion() {
        let has = |json: &str| has_completion(&serde_json::from_str(json).unwrap());
        assert!(has(r#"{"response":""}"#) && has(r#"{"completion":"a"}"#) && has(r#"{"messages":3}"#));
        assert!(has(r#"{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]}"#));
        assert!(!has(r#"{"prompt":"q","response":null}"#));
        assert!(!has(r#"{"messages":[{"role":"user","content":"q"}]}"#));
    }

    #[test]
    fn what_cannot_be_scored_says_why() {
        let error = |json: &str| sample(json).unwrap_err().to_string();
        assert!(error(r#"{"prompt":"q"}"#).contains("it has: prompt"));
        assert!(error(r#"{"response":3}"#).contains("`response` is neither a string nor a list of messages"));
        assert!(error(r#"{"completion":{"a":1}}"#).contains("`completion` is neither a string nor"));
        assert!(error(r#"{"prompt":"q","completion":[]}"#).contains("no message of the role assistant"));
        assert!(error(r#"{"messages":[{"role":"user","content":"q"}]}"#).contains("no message of the role assistant"));
    }
}
