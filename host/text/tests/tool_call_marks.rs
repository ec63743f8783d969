//! Marks of every format within arguments: where a call ends follows from its own grammar alone.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use gavel_data::seed;
use gavel_text::{Reply, TextModel, ToolCallFormat};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Texts that stand in arguments.
const PIECES: [&str; 38] = [
    "<tool_call>",
    "</tool_call>",
    "<function=f>",
    "<function=",
    "</function>",
    "<parameter=q>",
    "<parameter=n>",
    "</parameter>",
    "<think>",
    "</think>",
    "<|python_tag|>",
    "[TOOL_CALLS]",
    "[ARGS]",
    "[CALL_ID]",
    "{\"name\": \"g\", \"arguments\": {}}",
    "{\"name\": \"g\", \"parameters\": {}}",
    "<tool_call>{\"name\": \"g\"}</tool_call>",
    "g.call(a=\"b\")",
    "; ",
    ";",
    "\"",
    "'",
    "\\",
    "\\\"",
    "\\n",
    "\\u0022",
    "{",
    "}",
    "[",
    "]",
    "<",
    ">",
    "é",
    "🦀",
    "\u{2028}",
    "\t",
    "word",
    "1.50",
];

/// Numbers that look random, the same each time.
struct Random {
    seed: u64,
    count: u64,
}

impl Random {
    fn below(&mut self, most: usize) -> usize {
        self.count += 1;
        (seed::uniform(self.seed, self.count) * most as f64) as usize
    }

    fn text(&mut self) -> String {
        let pieces = (0..self.below(7)).map(|_| PIECES[self.below(PIECES.len())]);
        let pieces: Vec<&str> = pieces.collect();
        pieces.join(["", " ", "\n", " \n "][self.below(4)])
    }

    fn value(&mut self, levels: usize) -> Value {
        match self.below(if levels > 0 { 6 } else { 4 }) {
            0 => json!(self.below(1000) as i64 - 500),
            1 => json!([true, false][self.below(2)]),
            2 | 3 => self.text().into(),
            4 => (0..self.below(4)).map(|_| self.value(levels - 1)).collect(),
            _ => Value::Object((0..self.below(4)).map(|_| (self.text(), self.value(levels - 1))).collect()),
        }
    }

    fn call(&mut self) -> Call {
        let mut arguments = Map::new();
        arguments.insert("q".into(), self.text().into());
        arguments.insert("n".into(), json!(self.below(100)));
        arguments.insert("more".into(), json!({"inside": self.value(3)}));
        (["f", "find_it"][self.below(2)].to_owned(), Value::Object(arguments))
    }
}

/// The name and the arguments of a call.
type Call = (String, Value);

/// A way to write calls.
struct Form {
    name: &'static str,
    template: &'static str,
    format: ToolCallFormat,
    write: fn(&[Call]) -> String,
    /// Whether text may stand before the calls, and after them.
    has_text: [bool; 2],
}

fn each(calls: &[Call], between: &str, write: impl Fn(&str, &Value) -> String) -> String {
    calls.iter().map(|(name, arguments)| write(name, arguments)).collect::<Vec<_>>().join(between)
}

/// As the templates of Qwen3-Coder and Qwen3.5 write it.
fn xml(name: &str, arguments: &Value) -> String {
    let parameter = |(key, value): (&String, &Value)| {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        format!("<parameter={key}>\n{value}\n</parameter>\n")
    };
    let parameters: String = arguments.as_object().unwrap().iter().map(parameter).collect();
    format!("<tool_call>\n<function={name}>\n{parameters}</function>\n</tool_call>")
}

fn forms() -> Vec<Form> {
    use ToolCallFormat::{Hermes, Llama3, Mistral, QwenXml};
    let form = |name, template, format, write, has_text| Form { name, template, format, write, has_text };
    vec![
        form(
            "hermes",
            "qwen3",
            Hermes,
            |calls| {
                each(calls, "\n", |name, arguments| {
                    format!("<tool_call>\n{}\n</tool_call>", json!({"name": name, "arguments": arguments}))
                })
            },
            [true, true],
        ),
        form(
            "hermes, arguments as text",
            "qwen2_5",
            Hermes,
            |calls| {
                each(calls, "", |name, arguments| {
                    let call = json!({"arguments": arguments.to_string(), "name": name});
                    format!("<tool_call>{call:#}</tool_call>")
                })
            },
            [true, true],
        ),
        form("xml", "qwen3_5_think", QwenXml, |calls| each(calls, "\n", xml), [true, true]),
        form(
            "llama",
            "header_json_tools",
            Llama3,
            |calls| each(calls, "; ", |name, arguments| json!({"name": name, "parameters": arguments}).to_string()),
            [false, false],
        ),
        form(
            "llama after its mark",
            "header_json_tools",
            Llama3,
            |calls| {
                let written =
                    each(calls, ";\n", |name, arguments| json!({"name": name, "parameters": arguments}).to_string());
                format!("<|python_tag|>{written}")
            },
            [true, false],
        ),
        form(
            "mistral, a list",
            "mistral_v3",
            Mistral,
            |calls| {
                let list =
                    each(calls, ", ", |name, arguments| json!({"name": name, "arguments": arguments}).to_string());
                format!("[TOOL_CALLS] [{list}]")
            },
            [true, false],
        ),
        form(
            "mistral, arguments",
            "mistral_small",
            Mistral,
            |calls| each(calls, "", |name, arguments| format!("[TOOL_CALLS]{name}[ARGS]{arguments}")),
            [true, false],
        ),
    ]
}

fn tools() -> Vec<Value> {
    let properties = json!({"q": {"type": "string"}, "n": {"type": "integer"}, "more": {"type": "object"}});
    let function = |name| json!({"name": name, "parameters": {"type": "object", "properties": properties}});
    ["f", "find_it"].map(|name| json!({"type": "function", "function": function(name)})).into()
}

fn calls(reply: &Reply) -> Vec<Call> {
    let read = reply.tool_calls.iter();
    read.map(|call| (call.name.clone(), serde_json::from_str(&call.arguments).unwrap())).collect()
}

/// Whether a text holds what ends a value that is not escaped, so that no reader could tell.
fn ends_a_value(text: &str) -> bool {
    let follows = |tag: &str, next: &[&str]| {
        text.match_indices(tag).any(|(at, _)| {
            let after = text[at + tag.len()..].trim_start();
            after.is_empty() || next.iter().any(|next| after.starts_with(next))
        })
    };
    follows("</parameter>", &["<parameter=", "</function>", "</tool_call>"])
        || follows("</function>", &["</tool_call>", "<tool_call>", "<function="])
}

/// A model with bytes as tokens, and the template of a form.
fn model(form: &Form) -> TextModel {
    let folder = tempfile::tempdir().unwrap();
    TextModel::byte_level().save(folder.path()).unwrap();
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/chat_templates");
    let template = templates.join(form.template).with_extension("jinja");
    std::fs::copy(template, folder.path().join("chat_template.jinja")).unwrap();
    TextModel::load(folder.path()).unwrap()
}

/// The text of tokens that come one by one, in pieces of `length` tokens.
fn streamed(model: &TextModel, ids: &[u32], length: usize) -> String {
    let mut stream = model.tokenizer.stream(true);
    let mut text = String::new();
    for piece in ids.chunks(length) {
        let piece: String = piece.iter().map(|&id| stream.push(id).unwrap()).collect();
        text.push_str(&piece);
    }
    text + &stream.finish().unwrap()
}

#[test]
fn any_text_may_stand_in_an_argument() {
    let (mut compared, mut with_marks) = (0, 0);
    for form in forms() {
        let model = model(&form);
        assert_eq!(model.template.tool_call_format(), Some(form.format), "{}", form.name);
        for seed in 0..400 {
            let mut random = Random { seed, count: 0 };
            let made: Vec<Call> = (0..1 + random.below(3)).map(|_| random.call()).collect();
            let is_unclear = |(_, arguments): &Call| ends_a_value(arguments["q"].as_str().unwrap());
            if form.format == ToolCallFormat::QwenXml && made.iter().any(is_unclear) {
                continue;
            }
            let thought = ["", "<think>\nA <tool_call> [TOOL_CALLS]?\n</think>\n\n", "Is it <tool_call>?</think>\n\n"];
            let thought = thought[random.below(3)];
            let text = |wanted: bool, random: &mut Random| ["", "Let me look."][random.below(1 + usize::from(wanted))];
            let before = text(form.has_text[0], &mut random);
            let after = text(form.has_text[1], &mut random);
            let reply = format!("{thought}{before}{}{after}", (form.write)(&made));

            let ids = model.tokenizer.encode(&reply).unwrap();
            let text = streamed(&model, &ids, 1 + random.below(9));
            assert_eq!(text, reply);
            let read = model.reply(&ids, text, &tools(), 0).unwrap();
            assert_eq!(calls(&read), made, "{}: {reply}", form.name);
            assert_eq!(read.content, format!("{thought}{before}{after}").trim_end(), "{}: {reply}", form.name);
            assert!(read.malformed.is_empty(), "{}: {reply}", form.name);
            compared += 1;
            with_marks += usize::from(
                ["think>", "tool_call>", "[TOOL"]
                    .iter()
                    .any(|mark| made.iter().any(|(_, arguments)| arguments.to_string().contains(mark))),
            );
        }
    }
    println!("{compared} replies, {with_marks} with marks in arguments");
    assert!(compared > 2000 && with_marks > 1000, "{compared} {with_marks}");
}

/// A reply that is cut off has the calls that were complete, and all of its other text.
#[test]
fn no_cut_makes_another_call() {
    let mut compared = 0;
    for form in forms() {
        for seed in 1000..1030 {
            let mut random = Random { seed, count: 0 };
            let made = [random.call(), random.call()];
            let is_unclear = |(_, arguments): &Call| ends_a_value(arguments["q"].as_str().unwrap());
            if form.format == ToolCallFormat::QwenXml && made.iter().any(is_unclear) {
                continue;
            }
            let reply = (form.write)(&made);
            for (cut, _) in reply.char_indices() {
                let part = &reply[..cut];
                let read = form.format.parse(part, &tools(), 0);
                let found = calls(&read);
                assert_eq!(found, made[..found.len()], "{}: {part}", form.name);
                assert!(!found.is_empty() || read.content == part, "{}: {part}", form.name);
                let is_there = |call: &gavel_text::MalformedCall| read.content.contains(&call.text);
                assert!(read.malformed.len() <= 1 && read.malformed.iter().all(is_there), "{}: {part}", form.name);
                compared += 1;
            }
        }
    }
    assert!(compared > 20_000, "{compared}");
}
