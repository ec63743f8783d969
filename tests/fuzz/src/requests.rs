//! The part of a client's request to `gavel serve` that Gavel itself
//! interprets: messages, tools, and variables of the chat template, which
//! become the tokens of a prompt. The other fields are numbers and switches,
//! which `host/serve` reads.

use gavel_data::Message;
use gavel_text::{ChatTemplate, RenderOptions, TextModel, Tokenizer};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::path::Path;
use std::sync::LazyLock;

/// As in `host/serve/src/openai/chat.rs`.
#[derive(Deserialize)]
struct Asked {
    messages: Vec<Message>,
    tools: Option<Vec<Value>>,
    chat_template_kwargs: Option<Map<String, Value>>,
}

/// Templates that use messages and tools in different ways.
const TEMPLATES: [&str; 4] = ["qwen3", "deepseekv3", "header_json_tools", "mistral_v3"];

static MODELS: LazyLock<Vec<TextModel>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../parity/chat_templates");
    let of = |name: &str| {
        let model = tempfile::tempdir().unwrap();
        let from = folder.join(name).with_extension("jinja");
        std::fs::copy(from, model.path().join("chat_template.jinja")).unwrap();
        let template = ChatTemplate::load(model.path()).unwrap();
        TextModel { tokenizer: Tokenizer::byte_level(), template }
    };
    TEMPLATES.into_iter().map(of).chain([TextModel::byte_level()]).collect()
});

pub(crate) fn read(input: &[u8]) -> bool {
    let Ok(asked) = serde_json::from_slice::<Asked>(input).inspect_err(|error| drop(error.to_string())) else {
        return false;
    };
    let tools = asked.tools.unwrap_or_default();
    let variables = asked.chat_template_kwargs.unwrap_or_default();
    let mut rendered = false;
    for model in MODELS.iter() {
        let options = RenderOptions { variables: variables.clone(), ..RenderOptions::prompt(&tools) };
        match model.prompt_ids_with(&asked.messages, &options) {
            Ok(ids) => {
                rendered = true;
                let text = model.tokenizer.decode_with(&ids, false).unwrap();
                // Special tokens in messages are other tokens than in the template, and the same text.
                assert_eq!(model.template.render(&asked.messages, &options).unwrap(), text);
            }
            Err(error) => drop(error.to_string()),
        }
    }
    rendered
}
