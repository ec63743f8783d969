//! Every conversation in `tests/parity/chat_templates/rendered/` gives the
//! text that transformers gave (`tests/parity/chat_templates.py`).

use chrono::{DateTime, Utc};
use gavel_data::Message;
use gavel_text::{ChatTemplate, RenderOptions, TextError};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Conversations {
    now: String,
    tools: Map<String, Value>,
    conversations: Map<String, Value>,
}

/// The result of transformers for a conversation.
#[derive(Debug, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Outcome {
    Text(String),
    /// By `raise_exception`, with this message.
    Raised(String),
    /// With an error of Python or Jinja, whose message differs here.
    Failed(String),
}

#[derive(Deserialize)]
struct Rendered {
    template: String,
    special_tokens: Map<String, Value>,
    rendered: Map<String, Value>,
}

#[derive(Deserialize)]
struct Expression {
    source: String,
    #[serde(flatten)]
    outcome: Outcome,
}

fn folder() -> PathBuf {
    match std::env::var_os("GAVEL_RENDERED") {
        Some(folder) => folder.into(),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/chat_templates/rendered"),
    }
}

fn read<T: serde::de::DeserializeOwned>(path: &Path) -> T {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

fn load(source: &str, special_tokens: &Map<String, Value>) -> Result<ChatTemplate, TextError> {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("chat_template.jinja"), source).unwrap();
    std::fs::write(dir.path().join("tokenizer_config.json"), json!(special_tokens).to_string()).unwrap();
    ChatTemplate::load(dir.path())
}

fn outcome(result: Result<String, TextError>) -> Outcome {
    match result {
        Ok(text) => Outcome::Text(text),
        Err(TextError::Refused { what, .. }) => Outcome::Raised(what),
        Err(other) => Outcome::Failed(other.to_string()),
    }
}

fn same(ours: &Outcome, theirs: &Outcome) -> bool {
    ours == theirs || matches!((ours, theirs), (Outcome::Failed(_), Outcome::Failed(_)))
}

#[test]
fn conversations_are_rendered_as_by_transformers() {
    let given: Conversations = read(&folder().join("conversations.json"));
    assert!(given.conversations.len() >= 50);
    let (mut compared, mut differ) = (0, Vec::new());
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| !path.ends_with("conversations.json") && !path.ends_with("expressions.json"));
    paths.sort();
    for path in paths {
        let family = path.file_stem().unwrap().to_string_lossy().into_owned();
        let theirs: Rendered = read(&path);
        let template =
            load(&theirs.template, &theirs.special_tokens).unwrap_or_else(|error| panic!("{family}: {error}"));
        for (name, conversation) in &given.conversations {
            let messages: Vec<Message> = serde_json::from_value(conversation["messages"].clone()).unwrap();
            let tools = conversation["tools"].as_str().map(|name| given.tools[name].as_array().unwrap().as_slice());
            let options = RenderOptions {
                tools: tools.unwrap_or_default(),
                add_generation_prompt: conversation["add_generation_prompt"].as_bool().unwrap(),
                variables: conversation["variables"].as_object().unwrap().clone(),
                now: Some(given.now.parse::<DateTime<Utc>>().unwrap()),
            };
            let ours = outcome(template.render(&messages, &options));
            let theirs: Outcome = serde_json::from_value(theirs.rendered[name].clone()).unwrap();
            compared += 1;
            if !same(&ours, &theirs) {
                differ.push(format!("{family}, {name}:\n  ours   {ours:?}\n  theirs {theirs:?}"));
            }
        }
    }
    println!("{compared} renders compared, {} differ", differ.len());
    assert!(differ.is_empty(), "{} of {compared} differ:\n{}", differ.len(), differ.join("\n"));
}

#[test]
fn expressions_give_what_they_give_in_python() {
    let given: Conversations = read(&folder().join("conversations.json"));
    let expressions: Vec<Expression> = read(&folder().join("expressions.json"));
    let messages = [Message::new(gavel_data::Role::User, "ab c")];
    let options = RenderOptions { now: Some(given.now.parse::<DateTime<Utc>>().unwrap()), ..RenderOptions::default() };
    let tokens = json!({"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"});
    let mut differ = Vec::new();
    for Expression { source, outcome: theirs } in &expressions {
        let template = load(source, tokens.as_object().unwrap());
        let ours = outcome(template.and_then(|template| template.render(&messages, &options)));
        if !same(&ours, theirs) {
            differ.push(format!("{source}\n  ours   {ours:?}\n  theirs {theirs:?}"));
        }
    }
    assert!(differ.is_empty(), "{} of {} differ:\n{}", differ.len(), expressions.len(), differ.join("\n"));
}
