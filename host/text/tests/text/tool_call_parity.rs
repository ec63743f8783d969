//! Every reply in `tests/parity/tool_calls/` has the calls and the text that it means, which are those that the parsers
//! of vLLM and sglang read (`tests/parity/tool_calls.py`), but where a case says why they are not.

use gavel_text::ToolCallFormat;
use serde::Deserialize;
use serde_json::Value;
use std::path::{Path, PathBuf};

#[derive(Deserialize)]
struct Form {
    format: String,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    case: String,
    reply: String,
    calls: Vec<(String, Value)>,
    content: String,
    /// What the reference reads where it differs, and the reason.
    reference: Option<Value>,
    why: Option<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/tool_calls")
}

fn format(name: &str) -> ToolCallFormat {
    match name {
        "Glm" => ToolCallFormat::Glm,
        "MiniMax" => ToolCallFormat::MiniMax,
        "Kimi" => ToolCallFormat::Kimi,
        "DeepSeek" => ToolCallFormat::DeepSeek,
        "Dsml" => ToolCallFormat::Dsml,
        "Seed" => ToolCallFormat::Seed,
        "Gemma" => ToolCallFormat::Gemma,
        "FunctionGemma" => ToolCallFormat::FunctionGemma,
        "Pythonic" => ToolCallFormat::Pythonic,
        "Harmony" => ToolCallFormat::Harmony,
        other => panic!("{other}"),
    }
}

/// The text without special tokens, as a reply without calls has it.
fn plain(format: ToolCallFormat, text: &str) -> String {
    match format {
        ToolCallFormat::Harmony => {
            text.rsplit_once("<|channel|>final<|message|>").map_or(text, |(_, text)| text).to_owned()
        }
        _ => text.to_owned(),
    }
}

#[test]
fn replies_are_read_as_by_the_reference() {
    let tools: Vec<Value> = serde_json::from_slice(&std::fs::read(folder().join("tools.json")).unwrap()).unwrap();
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| !path.ends_with("tools.json"));
    paths.sort();
    let (mut agree, mut explained, mut differ) = (0, 0, Vec::new());
    for path in &paths {
        let form: Form = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        let format = format(&form.format);
        for case in form.cases {
            let read = format.parse(&case.reply, &tools, 0);
            let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
            let calls: Vec<(String, Value)> =
                read.tool_calls.iter().map(|call| (call.name.clone(), value(&call.arguments))).collect();
            let content = if calls.is_empty() { plain(format, &read.content) } else { read.content.clone() };
            if calls != case.calls || content.trim() != case.content.trim() {
                let name = format!("{} {}", path.file_stem().unwrap().display(), case.case);
                let Case { reply, calls: meant, content: text, .. } = &case;
                differ.push(format!("{name}: {reply:?}\n  ours  {calls:?} {content:?}\n  meant {meant:?} {text:?}"));
            }
            match case.reference {
                None => agree += 1,
                Some(_) => {
                    assert!(case.why.is_some_and(|why| !why.is_empty()), "{}: {}", path.display(), case.case);
                    explained += 1;
                }
            }
        }
    }
    println!("{agree} replies as by the reference, {explained} otherwise with a reason");
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
    assert_eq!((paths.len(), agree + explained), (12, 672));
}
