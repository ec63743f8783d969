//! A task: one row of a dataset, in the form that all other code uses.

use crate::json::{Columns, Json};
use crate::message::{Message, Role, last_turn};
use crate::shown::Shown;
use crate::template_kwargs::check_template_kwargs;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

/// The answer key: the contents of a row beside the prompt.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Reference {
    /// `reward_model.ground_truth`, else the column `ground_truth`, else
    /// `answer`, else `solution`. A string as it is, any other value as JSON text.
    pub ground_truth: Option<String>,
    /// Every column of the row, untouched: numbers as they are written.
    pub columns: Columns,
}

/// One question of a dataset.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Task {
    /// The row's `id`, else `<split>/<extra_info.index>`, else
    /// `<split>/row-<number>`; stable over a run.
    pub id: String,
    /// Where the row comes from (`openai/gsm8k`, say).
    pub data_source: Option<String>,
    /// The conversation so far.
    pub prompt: Vec<Message>,
    /// The answer key.
    pub reference: Reference,
}

/// Why a row is not a task.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskError {
    /// There is no prompt.
    #[error("the row has neither `prompt` nor `messages` (it has: {})", Shown(.0))]
    NoPrompt(String),
    /// `messages` has a form that is not supported.
    #[error("`messages` is not a list of messages {{role, content}}: {}", Shown(.0))]
    BadMessages(String),
    /// `messages` begins with the answer.
    #[error("`messages` has no message before the assistant's")]
    NothingAsked,
    /// The prompt has a form that is not supported.
    #[error("`prompt` is neither a string nor a list of messages {{role, content}}: {}", Shown(.0))]
    BadPrompt(String),
    /// The prompt has no message.
    #[error("`prompt` is empty")]
    EmptyPrompt,
    /// `tools` has a form that is not supported.
    #[error(
        "`tools` must be a list of {{\"type\": \"function\", \"function\": {{\"name\", \"description\", \"parameters\"}}}}, or the JSON text of such a list: {}", Shown(.0)
    )]
    BadTools(String),
    /// `chat_template_kwargs` has a form that is not supported.
    #[error(
        "`chat_template_kwargs` must be an object with variables of the chat template, or its JSON text: {}", Shown(.0)
    )]
    BadTemplateKwargs(String),
}

impl Reference {
    /// The functions that the prompt offers: the column `tools`, as TRL reads
    /// it, in the form that chat templates take. Empty if there is no such
    /// column.
    pub fn tools(&self) -> Result<Vec<Value>, TaskError> {
        let bad = |what: String| Err(TaskError::BadTools(what));
        let Some(column) = self.columns.present("tools") else { return Ok(Vec::new()) };
        let tools = match column.parse().map_err(|error| TaskError::BadTools(error.to_string()))? {
            Value::String(text) if text.trim().is_empty() => return Ok(Vec::new()),
            Value::String(text) => match serde_json::from_str(&text) {
                Ok(Value::Array(tools)) => tools,
                Ok(_) => return bad("the text is not a list".into()),
                Err(error) => return bad(error.to_string()),
            },
            // In Parquet, every struct of a column has the fields of all rows.
            Value::Array(tools) => tools.iter().map(without_nulls).collect(),
            _ => return bad("it is neither a list nor text".into()),
        };
        let mut functions = Vec::new();
        for (index, tool) in tools.into_iter().enumerate() {
            // Some datasets have the functions without this object around them.
            let tool = if tool["name"].is_string() { json!({"type": "function", "function": tool}) } else { tool };
            if tool["type"] != "function" {
                return bad(format!("tool {index} does not have the `type` \"function\""));
            }
            if tool["function"]["name"].as_str().is_none_or(str::is_empty) {
                return bad(format!("tool {index} has no `function.name`"));
            }
            functions.push(tool);
        }
        Ok(functions)
    }

    /// The variables of the chat template for this row: the column `chat_template_kwargs`, as TRL reads it. Empty if
    /// there is no such column.
    pub fn template_kwargs(&self) -> Result<Map<String, Value>, TaskError> {
        let bad = |what: String| TaskError::BadTemplateKwargs(what);
        let Some(column) = self.columns.present("chat_template_kwargs") else { return Ok(Map::new()) };
        let kwargs = match column.parse().map_err(|error| bad(error.to_string()))? {
            Value::String(text) if text.trim().is_empty() => return Ok(Map::new()),
            Value::String(text) => serde_json::from_str(&text).map_err(|error| bad(error.to_string()))?,
            other => other,
        };
        match kwargs {
            Value::Object(kwargs) => check_template_kwargs(&kwargs).map(|()| kwargs).map_err(bad),
            // The JSON text of an absent value.
            Value::Null => Ok(Map::new()),
            other => Err(bad(format!("it is {other}"))),
        }
    }
}

/// A value without the fields that are null.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let there = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(there.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(values) => Value::Array(values.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

fn read_prompt(prompt: &Json) -> Result<Vec<Message>, TaskError> {
    let prompt = match prompt.string() {
        Some(text) => vec![Message::new(Role::User, text)],
        None => prompt.parse::<Vec<Message>>().map_err(|error| TaskError::BadPrompt(error.to_string()))?,
    };
    if prompt.is_empty() { Err(TaskError::EmptyPrompt) } else { Ok(prompt) }
}

/// The prompt of a whole conversation.
fn asked_in(messages: &Json) -> Result<Vec<Message>, TaskError> {
    let mut messages: Vec<Message> =
        messages.parse().map_err(|error: serde_json::Error| TaskError::BadMessages(error.to_string()))?;
    if messages.last().is_some_and(|last| last.role == Role::Assistant) {
        messages.truncate(last_turn(&messages));
    }
    if messages.is_empty() { Err(TaskError::NothingAsked) } else { Ok(messages) }
}

impl Task {
    /// A task from the row at `position` (from 0) of the split `split`. Its prompt is the column `prompt`, or else
    /// `messages` without the assistant's turn at their end.
    pub fn from_row(columns: Columns, position: usize, split: &str) -> Result<Self, TaskError> {
        let prompt = match (columns.present("prompt"), columns.present("messages")) {
            (Some(prompt), _) => read_prompt(prompt)?,
            (None, Some(messages)) => asked_in(messages)?,
            (None, None) => return Err(TaskError::NoPrompt(columns.names().collect::<Vec<_>>().join(", "))),
        };
        Ok(Self::with_prompt(columns, prompt, position, split))
    }

    /// A task whose prompt is already known; the other columns are read the
    /// way [`Task::from_row`] reads them.
    pub fn with_prompt(columns: Columns, prompt: Vec<Message>, position: usize, split: &str) -> Self {
        let index = columns.present("extra_info").and_then(|extra| extra.present("index"));
        let id = match (columns.present("id"), index) {
            (Some(id), _) => id.plain_text(),
            (None, Some(index)) => format!("{split}/{}", index.plain_text()),
            (None, None) => format!("{split}/row-{position}"),
        };
        let ground_truth = columns
            .present("reward_model")
            .and_then(|model| model.present("ground_truth"))
            .or_else(|| columns.present("ground_truth").cloned())
            .or_else(|| columns.present("answer").cloned())
            .or_else(|| columns.present("solution").cloned())
            .map(|truth| truth.plain_text());
        let data_source = columns.present("data_source").map(Json::plain_text);
        Self { id, data_source, prompt, reference: Reference { ground_truth, columns } }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(json: &str) -> Columns {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_verl_row_arrives_whole() {
        let columns = row(
            r#"{"data_source":"openai/gsm8k","prompt":[{"role":"user","content":"2+2?"}],"ability":"math",
                "reward_model":{"style":"rule","ground_truth":"4"},"extra_info":{"index":7,"split":"test","level":null},"weird":[1,{"a":null}]}"#,
        );
        let task = Task::from_row(columns.clone(), 0, "train").unwrap();
        // The split that it is used in, and not its `extra_info.split`.
        assert_eq!(task.id, "train/7");
        assert_eq!(task.data_source.as_deref(), Some("openai/gsm8k"));
        assert_eq!(task.reference.ground_truth.as_deref(), Some("4"));
        assert_eq!(task.reference.columns, columns);
    }

    #[test]
    fn a_bare_trl_row_loads_with_what_is_absent_absent() {
        let task = Task::from_row(row(r#"{"prompt":"Say hi"}"#), 3, "train").unwrap();
        assert_eq!(task.id, "train/row-3");
        assert_eq!((task.data_source, task.reference.ground_truth), (None, None));
        assert_eq!(task.prompt, vec![Message::new(Role::User, "Say hi")]);
    }

    #[test]
    fn a_ground_truth_may_be_a_number_or_json() {
        let truth = |json: &str| Task::from_row(row(json), 0, "t").unwrap().reference.ground_truth;
        assert_eq!(truth(r#"{"prompt":"x","ground_truth":4.5}"#).as_deref(), Some("4.5"));
        assert_eq!(truth(r#"{"prompt":"x","answer":["a","b"]}"#).as_deref(), Some(r#"["a","b"]"#));
        assert_eq!(truth(r#"{"prompt":"x","reward_model":{"ground_truth":null}}"#), None);
    }

    #[test]
    fn the_ground_truth_is_the_first_column_that_has_one() {
        let truth = |json: &str| Task::from_row(row(json), 0, "t").unwrap().reference.ground_truth;
        let columns =
            [r#""solution":"d""#, r#""answer":"c""#, r#""ground_truth":"b""#, r#""reward_model":{"ground_truth":"a"}"#];
        for (count, expected) in (1..=4).zip(["d", "c", "b", "a"]) {
            let json = format!(r#"{{"prompt":"x",{}}}"#, columns[..count].join(","));
            assert_eq!(truth(&json).as_deref(), Some(expected), "{json}");
        }
    }

    #[test]
    fn messages_are_a_prompt_up_to_the_turn_that_answers() {
        let prompt = |messages: &[(&str, &str)]| {
            let messages: Vec<Value> =
                messages.iter().map(|(role, text)| json!({"role": role, "content": text})).collect();
            let task = Task::from_row(row(&json!({"messages": messages}).to_string()), 0, "t")?;
            Ok::<_, TaskError>(task.prompt.iter().map(Message::text).collect::<String>())
        };
        let (s, u, a, t) = (("system", "s"), ("user", "u"), ("assistant", "a"), ("tool", "t"));
        assert_eq!(prompt(&[s, u]).unwrap(), "su");
        assert_eq!(prompt(&[s, u, a]).unwrap(), "su");
        // The results of its calls are a part of a turn.
        assert_eq!(prompt(&[u, a, u, a, t, a]).unwrap(), "uau");
        // It is asked to continue.
        assert_eq!(prompt(&[u, a, t]).unwrap(), "uat");
        assert_eq!(prompt(&[u, a, u]).unwrap(), "uau");
        assert_eq!(prompt(&[a]), Err(TaskError::NothingAsked));
        assert_eq!(prompt(&[]), Err(TaskError::NothingAsked));
        let error = Task::from_row(row(r#"{"messages":"u"}"#), 0, "t").unwrap_err().to_string();
        assert!(error.starts_with("`messages` is not a list of messages"), "{error}");
        // `prompt` wins over `messages`.
        let both = row(r#"{"prompt":"p","messages":[{"role":"user","content":"u"}]}"#);
        assert_eq!(Task::from_row(both, 0, "t").unwrap().prompt[0].text(), "p");
    }

    #[test]
    fn numbers_are_what_the_row_says() {
        let task = |json: &str| Task::from_row(row(json), 0, "t").unwrap();
        let digits = "123456789012345678901234567890";
        for truth in [digits, "4.50", "1e999"] {
            for written in [
                format!(r#"{{"prompt":"x","answer":{truth}}}"#),
                format!(r#"{{"prompt":"x","ground_truth": {truth} }}"#),
                format!(r#"{{"prompt":"x","reward_model":{{"ground_truth":{truth}}}}}"#),
            ] {
                assert_eq!(task(&written).reference.ground_truth.as_deref(), Some(truth));
            }
        }
        // Ids that are equal as binary numbers stay different.
        assert_eq!(task(&format!(r#"{{"prompt":"x","id":{digits}}}"#)).id, digits);
        assert_eq!(task(r#"{"prompt":"x","extra_info":{"index":1.10}}"#).id, "t/1.10");
        let call = r#"{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"x": 4.50}}}]}"#;
        let called = task(&format!(r#"{{"prompt":[{call}]}}"#));
        assert_eq!(called.prompt[0].tool_calls[0].arguments, r#"{"x":4.50}"#);
    }

    #[test]
    fn tools_are_a_list_or_its_text() {
        let tools = |json: &str| Task::from_row(row(json), 0, "t").unwrap().reference.tools();
        let add =
            r#"{"type":"function","function":{"name":"add","parameters":{"properties":{"a":{"type":"number"}}}}}"#;
        let text = Value::String(format!("[{add}]"));
        let expected = vec![serde_json::from_str::<Value>(add).unwrap()];
        assert_eq!(tools(&format!(r#"{{"prompt":"x","tools":[{add}]}}"#)).unwrap(), expected);
        assert_eq!(tools(&format!(r#"{{"prompt":"x","tools":{text}}}"#)).unwrap(), expected);
        // Parquet gives each tool the fields of the others.
        let filled = add.replace(r#""a":{"type":"number"}"#, r#""a":{"type":"number"},"b":null"#);
        assert_eq!(tools(&format!(r#"{{"prompt":"x","tools":[{filled}]}}"#)).unwrap(), expected);
        let bare = r#"{"name":"add","parameters":{"properties":{"a":{"type":"number"}}}}"#;
        assert_eq!(tools(&format!(r#"{{"prompt":"x","tools":[{bare}]}}"#)).unwrap(), expected);
        for none in [
            r#"{"prompt":"x","tools":""}"#,
            r#"{"prompt":"x"}"#,
            r#"{"prompt":"x","tools":null}"#,
            r#"{"prompt":"x","tools":[]}"#,
        ] {
            assert_eq!(tools(none).unwrap(), Vec::<Value>::new());
        }
        for (wrong, says) in [
            (r#"{"name":"add"}"#, "it is neither a list nor text"),
            (r#""{}""#, "the text is not a list"),
            (r#""[""#, "EOF while parsing"),
            (r#"[{"type":"function","function":{"name":"f"}},{"tool":"g"}]"#, "tool 1 does not have the `type`"),
            (r#"["add"]"#, "tool 0 does not have the `type`"),
            (r#"[{"type":"function","function":{}}]"#, "tool 0 has no `function.name`"),
        ] {
            let error = tools(&format!(r#"{{"prompt":"x","tools":{wrong}}}"#)).unwrap_err().to_string();
            assert!(error.starts_with("`tools` must be a list of {\"type\"") && error.contains(says), "{error}");
        }
    }

    #[test]
    fn variables_of_the_template_are_an_object_or_its_text() {
        let kwargs = |value: Value| {
            let row = json!({"prompt": "x", "chat_template_kwargs": value}).to_string();
            Task::from_row(self::row(&row), 0, "t").unwrap().reference.template_kwargs()
        };
        // A variable that a row sets to null is there, as in Python.
        let given = json!({"enable_thinking": false, "documents": [{"title": "a"}], "effort": null});
        let expected = given.as_object().cloned().unwrap();
        assert_eq!(kwargs(given.clone()), Ok(expected.clone()));
        assert_eq!(kwargs(given.to_string().into()), Ok(expected));
        for none in [json!(null), json!({}), json!(""), json!("null"), json!("{}")] {
            assert_eq!(kwargs(none), Ok(Map::new()));
        }
        assert_eq!(Reference::default().template_kwargs(), Ok(Map::new()));
        for (wrong, says) in [
            (json!([1]), "it is [1]"),
            (json!(true), "it is true"),
            (json!("no"), "expected ident"),
            (json!("[]"), "it is []"),
            (json!({"a": 1, "messages": []}), "`messages` is not a variable of the chat template that can be set"),
            (json!({"tools": null}), "`tools` is not a variable"),
            (json!({"add_generation_prompt": false}), "`add_generation_prompt` is not a variable"),
            (json!({"chat_template": "x"}), "`chat_template` is not a variable"),
        ] {
            let error = kwargs(wrong).unwrap_err().to_string();
            let what = "`chat_template_kwargs` must be an object with variables of the chat template";
            assert!(error.starts_with(what) && error.contains(says), "{error}");
        }
    }

    #[test]
    fn a_row_without_a_prompt_says_what_it_has() {
        let error = Task::from_row(row(r#"{"question":"x","answer":"y"}"#), 0, "t").unwrap_err();
        assert_eq!(error.to_string(), "the row has neither `prompt` nor `messages` (it has: question, answer)");
    }
}
