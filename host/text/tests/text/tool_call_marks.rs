//! Marks of every format within arguments: where a call ends follows from its own grammar alone.

use gavel_data::seed;
use gavel_text::{Reply, TextModel, ToolCallFormat};
use serde_json::{Map, Value, json};
use std::path::Path;

/// Texts that stand in arguments.
const PIECES: [&str; 70] = [
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
    "<arg_key>",
    "</arg_key>",
    "<arg_value>",
    "</arg_value>",
    "<minimax:tool_call>",
    "</minimax:tool_call>",
    "<invoke name=\"f\">",
    "</invoke>",
    "<parameter name=\"q\">",
    "<|tool_call_end|>",
    "<|tool_calls_section_end|>",
    "<｜tool▁call▁end｜>",
    "<｜tool▁calls▁end｜>",
    "```",
    "<｜DSML｜function_calls>",
    "</｜DSML｜parameter>",
    "</｜DSML｜invoke>",
    "</｜DSML｜function_calls>",
    "<seed:tool_call>",
    "</seed:tool_call>",
    "</seed:think>",
    "<|tool_call>",
    "<tool_call|>",
    "<channel|>",
    "<end_function_call>",
    "<|call|>",
    "<|end|>",
    "<|start|>",
    "<|message|>",
    "<|python_end|>",
    "f(q=",
    "])",
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
    /// The marks around a thought.
    thought: [&'static str; 2],
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

fn written(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// A text for each argument.
fn pairs(arguments: &Value, write: impl Fn(&str, &Value) -> String) -> String {
    arguments.as_object().unwrap().iter().map(|(key, value)| write(key, value)).collect()
}

fn glm(name: &str, arguments: &Value) -> String {
    let pairs =
        pairs(arguments, |key, value| format!("<arg_key>{key}</arg_key>\n<arg_value>{}</arg_value>\n", written(value)));
    format!("<tool_call>{name}\n{pairs}</tool_call>")
}

fn seed(name: &str, arguments: &Value) -> String {
    let pairs = pairs(arguments, |key, value| format!("<parameter={key}>{}</parameter>\n", written(value)));
    format!("<seed:tool_call>\n<function={name}>\n{pairs}</function>\n</seed:tool_call>")
}

fn minimax(name: &str, arguments: &Value) -> String {
    let pairs = pairs(arguments, |key, value| format!("<parameter name=\"{key}\">{}</parameter>\n", written(value)));
    format!("<invoke name=\"{name}\">\n{pairs}</invoke>\n")
}

fn dsml(name: &str, arguments: &Value) -> String {
    let pairs = pairs(arguments, |key, value| {
        let text = written(value);
        format!("<｜DSML｜parameter name=\"{key}\" string=\"{}\">{text}</｜DSML｜parameter>\n", value.is_string())
    });
    format!("<｜DSML｜invoke name=\"{name}\">\n{pairs}</｜DSML｜invoke>\n")
}

/// A value as the templates of Gemma write it, with its keys in quotes.
fn gemma(value: &Value, quote: &str) -> String {
    let quoted = |text: &str| format!("{quote}{text}{quote}");
    match value {
        Value::String(text) => quoted(text),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| gemma(item, quote)).collect();
            format!("[{}]", items.join(","))
        }
        Value::Object(fields) => {
            let field = |(key, value): (&String, &Value)| format!("{}:{}", quoted(key), gemma(value, quote));
            let fields: Vec<String> = fields.iter().map(field).collect();
            format!("{{{}}}", fields.join(","))
        }
        other => other.to_string(),
    }
}

fn forms() -> Vec<Form> {
    use ToolCallFormat::{
        DeepSeek, Dsml, FunctionGemma, Gemma, Glm, Harmony, Hermes, Kimi, Llama3, MiniMax, Mistral, Pythonic, QwenXml,
        Seed,
    };
    let form = |name, template, format, write, has_text| {
        let thought = match format {
            Seed => ["<seed:think>", "</seed:think>"],
            Gemma => ["<|channel>thought", "<channel|>"],
            _ => ["<think>", "</think>"],
        };
        Form { name, template, format, write, has_text, thought }
    };
    vec![
        form("glm", "glm4moe", Glm, |calls| each(calls, "\n", glm), [true, true]),
        form("seed", "seed_oss", Seed, |calls| each(calls, "\n", seed), [true, true]),
        form(
            "minimax",
            "minimax_m2",
            MiniMax,
            |calls| format!("<minimax:tool_call>\n{}</minimax:tool_call>", each(calls, "", minimax)),
            [true, true],
        ),
        form(
            "dsml",
            "deepseek_v3_2",
            Dsml,
            |calls| format!("<｜DSML｜function_calls>\n{}</｜DSML｜function_calls>", each(calls, "", dsml)),
            [true, true],
        ),
        form(
            "kimi",
            "kimi_k2",
            Kimi,
            |calls| {
                let written = each(calls, "", |name, arguments| {
                    format!(
                        "<|tool_call_begin|>functions.{name}:0<|tool_call_argument_begin|>{arguments}<|tool_call_end|>"
                    )
                });
                format!("<|tool_calls_section_begin|>{written}<|tool_calls_section_end|>")
            },
            [true, true],
        ),
        form(
            "deepseek",
            "deepseek_v3_1",
            DeepSeek,
            |calls| {
                let written = each(calls, "", |name, arguments| {
                    format!("<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}<｜tool▁call▁end｜>")
                });
                format!("<｜tool▁calls▁begin｜>{written}<｜tool▁calls▁end｜>")
            },
            [true, true],
        ),
        form(
            "deepseek, a block of code",
            "deepseekv3",
            DeepSeek,
            |calls| {
                let written = each(calls, "\n", |name, arguments| {
                    format!(
                        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n{arguments}\n```<｜tool▁call▁end｜>"
                    )
                });
                format!("<｜tool▁calls▁begin｜>{written}<｜tool▁calls▁end｜>")
            },
            [true, true],
        ),
        form(
            "gemma",
            "gemma4",
            Gemma,
            |calls| {
                each(calls, "", |name, arguments| {
                    format!("<|tool_call>call:{name}{}<tool_call|>", gemma(arguments, "<|\"|>"))
                })
            },
            [true, true],
        ),
        form(
            "function gemma",
            "function_gemma",
            FunctionGemma,
            |calls| {
                each(calls, "", |name, arguments| {
                    format!("<start_function_call>call:{name}{}<end_function_call>", gemma(arguments, "<escape>"))
                })
            },
            [true, true],
        ),
        form(
            "pythonic",
            "pythonic",
            Pythonic,
            |calls| {
                let written = each(calls, ", ", |name, arguments| {
                    let arguments = arguments.as_object().unwrap().iter().map(|(key, value)| format!("{key}={value}"));
                    format!("{name}({})", arguments.collect::<Vec<_>>().join(", "))
                });
                format!("[{written}]")
            },
            [false, false],
        ),
        form(
            "harmony",
            "gptoss",
            Harmony,
            |calls| {
                each(calls, "<|start|>assistant", |name, arguments| {
                    format!("<|channel|>commentary to=functions.{name} <|constrain|>json<|message|>{arguments}<|call|>")
                })
            },
            [false, false],
        ),
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

/// Whether an argument holds what ends a value that is not escaped, so that no reader could tell.
fn is_unclear(format: ToolCallFormat, (_, arguments): &Call) -> bool {
    let follows = |text: &str, tag: &str, next: &[&str]| {
        text.match_indices(tag).any(|(at, _)| {
            let after = text[at + tag.len()..].trim_start();
            after.is_empty() || next.iter().any(|next| after.starts_with(next))
        })
    };
    let ends = |text: &str, tags: [&str; 6]| {
        let [open, close, function, function_end, parameter, parameter_end] = tags;
        follows(text, parameter_end, &[parameter, function_end, close])
            || follows(text, function_end, &[close, open, function])
    };
    let text = match format {
        // Values on lines of their own, of which only texts have line breaks.
        ToolCallFormat::QwenXml => arguments["q"].as_str().unwrap().to_owned(),
        _ => pairs(arguments, |_, value| written(value) + "\n|"),
    };
    match format {
        ToolCallFormat::QwenXml => {
            let tags = ["<tool_call>", "</tool_call>", "<function=", "</function>", "<parameter=", "</parameter>"];
            ends(&text, tags)
        }
        ToolCallFormat::Seed => {
            let [open, close] = ["<seed:tool_call>", "</seed:tool_call>"];
            ends(&text, [open, close, "<function=", "</function>", "<parameter=", "</parameter>"])
        }
        ToolCallFormat::MiniMax => {
            let [open, close] = ["<minimax:tool_call>", "</minimax:tool_call>"];
            ends(&text, [open, close, "<invoke name=", "</invoke>", "<parameter name=", "</parameter>"])
        }
        ToolCallFormat::Dsml => {
            let [open, close] = ["<｜DSML｜function_calls>", "</｜DSML｜function_calls>"];
            let [function, function_end] = ["<｜DSML｜invoke name=", "</｜DSML｜invoke>"];
            ends(&text, [open, close, function, function_end, "<｜DSML｜parameter name=", "</｜DSML｜parameter>"])
        }
        ToolCallFormat::Glm => {
            follows(&text, "</arg_value>", &["<arg_key>", "</tool_call>"])
                || follows(&text, "</tool_call>", &["<tool_call>"])
        }
        _ => false,
    }
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
            if made.iter().any(|call| is_unclear(form.format, call)) {
                continue;
            }
            let [open, close] = form.thought;
            let marks = "<tool_call> [TOOL_CALLS] <|tool_call> <minimax:tool_call> <｜tool▁calls▁begin｜>";
            let thought = ["", &format!("{open}\nA {marks}?\n{close}\n\n"), &format!("Is it {marks}?{close}\n\n")];
            let kinds = if form.format == ToolCallFormat::Harmony { 1 } else { 3 };
            let thought = thought[random.below(kinds)];
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
            if made.iter().any(|call| is_unclear(form.format, call)) {
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
