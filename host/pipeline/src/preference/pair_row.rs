//! A row with a pair, in the forms that TRL's datasets have.

use crate::error::PipelineError;
use crate::rows::{template_kwargs, tools};
use gavel_agent::PromptOptions;
use gavel_data::{Columns, Message, Role, Row, Task, TaskError, last_turn};
use std::path::Path;

/// The place of a row, for errors.
pub(super) struct RowPlace<'a> {
    pub(super) path: &'a Path,
    pub(super) place: String,
}

impl RowPlace<'_> {
    /// The error of a row that cannot be used.
    pub(super) fn bad_row(&self, what: String) -> PipelineError {
        PipelineError::BadRow { path: self.path.to_owned(), place: self.place.clone(), what }
    }
}

/// A prompt with two answers, of which one is preferred.
#[derive(Debug)]
pub(super) struct PairRow {
    pub(super) prompt: Vec<Message>,
    /// The messages after the prompt; the last one is the assistant's.
    pub(super) chosen: Vec<Message>,
    pub(super) rejected: Vec<Message>,
    /// 0 where the row has none.
    pub(super) margin: f64,
    pub(super) options: PromptOptions,
}

impl PairRow {
    /// Reads `chosen` and `rejected`: answers to the `prompt`, or whole conversations, whose prompt is what both begin
    /// with.
    pub(super) fn read(row: Row) -> Result<Self, String> {
        let Row { position, columns, .. } = row;
        let (mut chosen, mut rejected) = (side(&columns, "chosen")?, side(&columns, "rejected")?);
        let margin = margin(&columns)?;
        let is_whole = |messages: &[Message]| messages.first().is_some_and(|first| first.role != Role::Assistant);
        let task = match (is_whole(&chosen), is_whole(&rejected)) {
            (true, true) => {
                let same = chosen.iter().zip(&rejected).take_while(|(a, b)| a == b).count();
                let prompt = same.min(last_turn(&chosen)).min(last_turn(&rejected));
                if prompt == 0 {
                    return Err("`chosen` and `rejected` are conversations that begin differently: they answer no common prompt".into());
                }
                chosen.drain(..prompt);
                let prompt = rejected.drain(..prompt).collect();
                Task::with_prompt(columns, prompt, position, "train")
            }
            (false, false) => Task::from_row(columns, position, "train").map_err(|error| match error {
                TaskError::NoPrompt(_) => format!(
                    "{error}\nhint: answers need a prompt: say which column it is, such as --set 'data.columns.prompt=\"question\"', or give whole conversations as `chosen` and `rejected`"
                ),
                error => error.to_string(),
            })?,
            _ => return Err("one of `chosen` and `rejected` is a whole conversation, and the other an answer".into()),
        };
        for (name, messages) in [("chosen", &chosen), ("rejected", &rejected)] {
            if messages.last().is_none_or(|last| last.role != Role::Assistant) {
                return Err(format!("`{name}` does not end with a message of the assistant"));
            }
        }
        let options =
            PromptOptions { functions: tools(&task)?.into(), template_kwargs: template_kwargs(&task)?.into() };
        Ok(Self { prompt: task.prompt, chosen, rejected, margin, options })
    }
}

/// The messages of a column: a text is the assistant's.
fn side(columns: &Columns, name: &str) -> Result<Vec<Message>, String> {
    let Some(column) = columns.present(name) else {
        let has = columns.names().collect::<Vec<_>>().join(", ");
        return Err(format!(
            "the row has no `{name}` (it has: {})\nhint: say which column it is, such as --set 'data.columns.{name}=\"{}\"'",
            gavel_data::Shown(has),
            if name == "chosen" { "better" } else { "worse" }
        ));
    };
    match column.string() {
        Some(text) => Ok(vec![Message::new(Role::Assistant, text)]),
        None => column
            .parse()
            .map_err(|error| format!("`{name}` is neither a text nor a list of messages {{role, content}}: {error}")),
    }
}

fn margin(columns: &Columns) -> Result<f64, String> {
    match columns.present("margin").map(|margin| margin.parse::<f64>()) {
        None => Ok(0.0),
        Some(Ok(margin)) => Ok(margin),
        Some(Err(_)) => Err("`margin` is not a number".into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(columns: Value) -> Result<PairRow, String> {
        let columns = serde_json::from_str(&columns.to_string()).unwrap();
        PairRow::read(Row { position: 0, place: "line 1".into(), columns })
    }

    /// Prompt, chosen and rejected: the first letter of the role and the text of each message.
    fn texts(columns: Value) -> [String; 3] {
        let row = read(columns).unwrap();
        [row.prompt, row.chosen, row.rejected].map(|messages| {
            let text = |message: &Message| format!("{}:{} ", &message.role.as_str()[..1], message.text());
            messages.iter().map(text).collect()
        })
    }

    fn user(text: &str) -> Value {
        json!({"role": "user", "content": text})
    }

    fn said(text: &str) -> Value {
        json!({"role": "assistant", "content": text})
    }

    #[test]
    fn every_form_of_trl_is_read() {
        let plain = ["u:q ", "a:b ", "a:c "];
        assert_eq!(texts(json!({"prompt": "q", "chosen": "b", "rejected": "c"})), plain);
        assert_eq!(texts(json!({"prompt": [user("q")], "chosen": [said("b")], "rejected": [said("c")]})), plain);
        // The prompt is in both, whatever the column `prompt` is.
        let whole = json!({"chosen": [user("q"), said("b")], "rejected": [user("q"), said("c")]});
        assert_eq!(texts(whole.clone()), plain);
        let mut doubled = whole;
        doubled["prompt"] = "q".into();
        assert_eq!(texts(doubled), plain);
        let turns = |last: &str| json!([user("q"), said("r"), user("s"), said(last)]);
        assert_eq!(texts(json!({"chosen": turns("b"), "rejected": turns("c")})), ["u:q a:r u:s ", "a:b ", "a:c "]);
        // Two equal answers are still answers.
        assert_eq!(texts(json!({"chosen": turns("b"), "rejected": turns("b")})), ["u:q a:r u:s ", "a:b ", "a:b "]);
        let longer = json!({"chosen": turns("b"), "rejected": [user("q"), said("c")]});
        assert_eq!(texts(longer), ["u:q ", "a:r u:s a:b ", "a:c "]);
    }

    #[test]
    fn a_margin_may_be_there() {
        let margin = |margin: Value| {
            read(json!({"prompt": "q", "chosen": "b", "rejected": "c", "margin": margin})).map(|row| row.margin)
        };
        assert_eq!((margin(json!(1.5)), margin(json!(null))), (Ok(1.5), Ok(0.0)));
        assert_eq!(margin(json!("much")), Err("`margin` is not a number".into()));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let error = |columns: Value| read(columns).unwrap_err();
        for (columns, says) in [
            (json!({"prompt": "q", "chosen": "b"}), "the row has no `rejected` (it has: prompt, chosen)\nhint: "),
            (json!({"chosen": "b", "rejected": "c"}), "\nhint: answers need a prompt"),
            (json!({"chosen": [user("q"), said("b")], "rejected": "c"}), "one of `chosen` and `rejected` is a whole"),
            (json!({"chosen": [user("q"), said("b")], "rejected": [user("r"), said("c")]}), "begin differently"),
            (json!({"chosen": [user("q"), said("b")], "rejected": [user("q")]}), "`rejected` does not end with"),
            (json!({"prompt": "q", "chosen": [], "rejected": "c"}), "`chosen` does not end with a message of the"),
            (json!({"prompt": "q", "chosen": 3, "rejected": "c"}), "`chosen` is neither a text nor a list"),
            (
                json!({"prompt": "q", "chosen": "b", "rejected": "c", "chat_template_kwargs": {"tools": []}}),
                "`chat_template_kwargs` must be an object with variables of the chat template",
            ),
        ] {
            let error = error(columns.clone());
            assert!(error.contains(says), "{columns}: {error}");
        }
    }
}
