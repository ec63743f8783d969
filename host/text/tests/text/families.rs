//! Models with the chat templates of the fixtures.

use gavel_data::{Message, Role};
use gavel_text::{RenderOptions, TextModel};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// The special tokens of all families.
pub const SPECIAL: [&str; 83] = [
    "<s>",
    "</s>",
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|python_tag|>",
    "[INST]",
    "[/INST]",
    "[TOOL_CALLS]",
    "[TOOL_RESULTS]",
    "[/TOOL_RESULTS]",
    "[AVAILABLE_TOOLS]",
    "[/AVAILABLE_TOOLS]",
    "[SYSTEM_PROMPT]",
    "[/SYSTEM_PROMPT]",
    "[CALL_ID]",
    "[ARGS]",
    "[TOOL_CONTENT]",
    "<start_of_turn>",
    "<end_of_turn>",
    "<|user|>",
    "<|assistant|>",
    "<|system|>",
    "<|end|>",
    "<|observation|>",
    "[gMASK]",
    "<sop>",
    "<end_of_utterance>",
    "<|start|>",
    "<|message|>",
    "<|channel|>",
    "<|call|>",
    "<|return|>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<｜end▁of▁sentence｜>",
    "<｜tool▁calls▁begin｜>",
    "<｜tool▁call▁begin｜>",
    "<｜tool▁sep｜>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
    "<｜tool▁outputs▁begin｜>",
    "<｜tool▁output▁begin｜>",
    "<｜tool▁output▁end｜>",
    "<｜tool▁outputs▁end｜>",
    "<|extra_0|>",
    "<|header_start|>",
    "<|header_end|>",
    "<|eot|>",
    "<|python_start|>",
    "<|python_end|>",
    "]~b]",
    "[e~[",
    "<|im_user|>",
    "<|im_assistant|>",
    "<|im_system|>",
    "<|im_middle|>",
    "<|tool_calls_section_begin|>",
    "<|tool_calls_section_end|>",
    "<|tool_call_begin|>",
    "<|tool_call_argument_begin|>",
    "<|tool_call_end|>",
    "｜DSML｜",
    "<seed:bos>",
    "<seed:eos>",
    "<seed:tool_call>",
    "</seed:tool_call>",
    "<|turn>",
    "<turn|>",
    "<|tool_call>",
    "<tool_call|>",
    "<|tool_response>",
    "<tool_response|>",
    "<|\"|>",
    "<start_function_call>",
    "<end_function_call>",
    "<start_function_response>",
    "<end_function_response>",
    "<escape>",
];

/// Those that end a reply of a family.
pub fn ends(name: &str) -> &'static [&'static str] {
    match name {
        "deepseek_r1_distill" | "deepseekv3" | "deepseek_v3_1" | "deepseek_v3_2" | "deepseek_v4" => {
            &["<｜end▁of▁sentence｜>"]
        }
        "gemma4" => &["<turn|>", "<|tool_response>"],
        "glm4moe" | "glm4_7" => &["<|endoftext|>", "<|user|>", "<|observation|>"],
        "gptoss" => &["<|return|>", "<|endoftext|>", "<|call|>"],
        "header_json_tools" => &["<|eot_id|>", "<|eom_id|>"],
        "minimax_m2" => &["[e~["],
        "mistral_small" | "mistral_v3" | "zephyr" => &["</s>"],
        "phi3" => &["<|end|>", "<|endoftext|>"],
        "pythonic" => &["<|eot|>"],
        "seed_oss" => &["<seed:eos>"],
        "smolvlm" => &["<end_of_utterance>"],
        "function_gemma" | "turns" | "turns_with_parts" => &["<end_of_turn>"],
        _ => &["<|im_end|>", "<|endoftext|>"],
    }
}

/// Marks of calls that are tokens without being special ones, as in the tokenizers of Qwen.
pub const CALL_MARKS: [&str; 4] = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/chat_templates")
}

/// Bytes as tokens, the special tokens of all families, and one of the templates.
pub fn model(name: &str) -> TextModel {
    let source = std::fs::read_to_string(folder().join(name).with_extension("jinja")).unwrap();
    model_with(&source, ends(name))
}

pub fn model_with(template: &str, ends: &[&str]) -> TextModel {
    let dir = tempfile::tempdir().unwrap();
    TextModel::byte_level().save(dir.path()).unwrap();
    let write = |name: &str, text: &str| std::fs::write(dir.path().join(name), text).unwrap();
    let path = dir.path().join("tokenizer.json");
    let mut definition: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let special = SPECIAL.iter().map(|content| (content, true));
    let tokens = special.chain(CALL_MARKS.iter().map(|content| (content, false)));
    for ((content, special), id) in tokens.zip(300..) {
        if definition["model"]["vocab"].get(content).is_none() {
            definition["added_tokens"].as_array_mut().unwrap().push(json!({
                "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
                "normalized": false, "special": special,
            }));
        }
    }
    write("tokenizer.json", &definition.to_string());
    let tokens = json!({"bos_token": "<s>", "eos_token": ends[0], "unk_token": "<s>"});
    write("tokenizer_config.json", &tokens.to_string());
    write("chat_template.jinja", template);
    let tokenizer = TextModel::load(dir.path()).unwrap().tokenizer;
    let ids: Vec<u32> = ends.iter().map(|end| tokenizer.token_id(end).unwrap()).collect();
    write("generation_config.json", &json!({"eos_token_id": ids}).to_string());
    TextModel::load(dir.path()).unwrap()
}

pub fn tools() -> Vec<Value> {
    let parameters = json!({"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]});
    let function = json!({"name": "weather", "description": "The weather.", "parameters": parameters});
    vec![json!({"type": "function", "function": function})]
}

pub fn names() -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jinja"))
        .map(|path| path.file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

pub fn prompt() -> Vec<Message> {
    vec![Message::new(Role::User, "Is it warm in Zürich?")]
}

pub fn options(tools: &[Value]) -> RenderOptions<'_> {
    RenderOptions { now: Some("2026-02-03T04:05:06Z".parse().unwrap()), ..RenderOptions::prompt(tools) }
}
