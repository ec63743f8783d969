//! Calls in replies, as models write them and as their templates write them.

use gavel_data::{ContentPart, Message, Role, ToolCall};
use gavel_text::{ChatTemplate, RenderOptions, ToolCallFormat};
use serde_json::{Value, json};
use std::path::Path;

fn templates() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/chat_templates")
}

fn source(name: &str) -> String {
    std::fs::read_to_string(templates().join(name).with_extension("jinja")).unwrap()
}

/// The content, and each call as `id name arguments`.
fn parse(format: ToolCallFormat, reply: &str) -> (String, Vec<String>) {
    let reply = format.parse(reply, &tools(), 0);
    let calls = reply.tool_calls.iter().map(|call| format!("{} {} {}", call.id, call.name, call.arguments)).collect();
    (reply.content, calls)
}

fn tools() -> Vec<Value> {
    vec![json!({"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
        "text": {"type": "string"}, "number": {"type": "number"}, "list": {"type": "array"}}}}})]
}

#[track_caller]
fn is(format: ToolCallFormat, reply: &str, content: &str, calls: &[&str]) {
    assert_eq!(parse(format, reply), (content.to_owned(), calls.iter().map(|&call| call.to_owned()).collect()));
}

/// The reply has no calls, and its content is unchanged.
#[track_caller]
fn is_content(format: ToolCallFormat, reply: &str) {
    is(format, reply, reply, &[]);
}

#[test]
fn the_format_is_told_by_the_template() {
    let formats = [
        ("qwen2_5", Some(ToolCallFormat::Hermes)),
        ("qwen3", Some(ToolCallFormat::Hermes)),
        ("qwen3_5_think", Some(ToolCallFormat::QwenXml)),
        ("header_json_tools", Some(ToolCallFormat::Llama3)),
        ("mistral_v3", Some(ToolCallFormat::Mistral)),
        ("mistral_small", Some(ToolCallFormat::Mistral)),
        ("glm4moe", Some(ToolCallFormat::Glm)),
        ("glm4_7", Some(ToolCallFormat::Glm)),
        ("gptoss", Some(ToolCallFormat::Harmony)),
        ("minimax_m2", Some(ToolCallFormat::MiniMax)),
        ("kimi_k2", Some(ToolCallFormat::Kimi)),
        ("deepseekv3", Some(ToolCallFormat::DeepSeek)),
        ("deepseek_r1_distill", Some(ToolCallFormat::DeepSeek)),
        ("deepseek_v3_1", Some(ToolCallFormat::DeepSeek)),
        ("deepseek_v3_2", Some(ToolCallFormat::Dsml)),
        ("deepseek_v4", Some(ToolCallFormat::Dsml)),
        ("seed_oss", Some(ToolCallFormat::Seed)),
        ("gemma4", Some(ToolCallFormat::Gemma)),
        ("function_gemma", Some(ToolCallFormat::FunctionGemma)),
        ("pythonic", Some(ToolCallFormat::Pythonic)),
        ("chatml", None),
        ("zephyr", None),
    ];
    for (name, format) in formats {
        assert_eq!(ToolCallFormat::detect(&source(name)), format, "{name}");
    }
}

#[test]
fn hermes() {
    use ToolCallFormat::Hermes;
    let call = "<tool_call>\n{\"name\": \"f\", \"arguments\": {\"a\": [1, 2.0, \"</x>\"]}}\n</tool_call>";
    is(Hermes, call, "", &[r#"call00000 f {"a":[1,2.0,"</x>"]}"#]);
    is(
        Hermes,
        &format!("Let me look.\n{call}\n{call}\n"),
        "Let me look.",
        &[r#"call00000 f {"a":[1,2.0,"</x>"]}"#, r#"call00001 f {"a":[1,2.0,"</x>"]}"#],
    );
    // The end may be missing, and arguments may be text or absent.
    is(Hermes, "<tool_call>{\"name\": \"f\"}", "", &["call00000 f {}"]);
    is(Hermes, r#"<tool_call>{"name": "f", "arguments": "{\"a\": 1}"}</tool_call>"#, "", &[r#"call00000 f {"a": 1}"#]);
    // A malformed call stays in the content.
    let mixed = format!("x <tool_call>{{\"name\": }}</tool_call> y {call} z");
    is(Hermes, &mixed, "x <tool_call>{\"name\": }</tool_call> y z", &[r#"call00000 f {"a":[1,2.0,"</x>"]}"#]);
    for malformed in [
        "<tool_call>",
        "<tool_call></tool_call>",
        "<tool_call>f(1)</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": {\"a\": 1}</tool_call>",
        "<tool_call>{\"name\": \"f\", \"arguments\": [1]}</tool_call>",
        "<tool_call>{\"name\": 1, \"arguments\": {}}</tool_call>",
        "<tool_call>{\"arguments\": {}}</tool_call> \n",
        "{\"name\": \"f\", \"arguments\": {}}",
        "  no call \n",
        "",
    ] {
        is_content(Hermes, malformed);
    }
    // A call in the reasoning is not a call.
    let thought = format!("<think>\nShall I {call}?\n</think>\n\n");
    is_content(Hermes, &thought);
    is_content(Hermes, &format!("<think>{call}"));
    is(Hermes, &format!("{thought}{call}"), thought.trim_end(), &[r#"call00000 f {"a":[1,2.0,"</x>"]}"#]);
}

#[test]
fn qwen_xml() {
    use ToolCallFormat::QwenXml;
    let reply = "Look:\n\n<tool_call>\n<function=f>\n<parameter=text>\n12\n</parameter>\n<parameter=number>\n12\n</parameter>\n<parameter=list>\n[\"a\", {}]\n</parameter>\n<parameter=other>\na\n</parameter>\nb\n</parameter>\n</function>\n</tool_call>";
    is(
        QwenXml,
        reply,
        "Look:",
        &[r#"call00000 f {"text":"12","number":12,"list":["a",{}],"other":"a\n</parameter>\nb"}"#],
    );
    is(QwenXml, "<tool_call>\n<function=now>\n</function>\n</tool_call>", "", &["call00000 now {}"]);
    for malformed in [
        "<tool_call>\n<function=f>\n<parameter=text>\n12\n</function>\n</tool_call>",
        "<tool_call>\n<function=f>\n</tool_call>",
        "<tool_call>{\"name\": \"f\"}</tool_call>",
        "<function=f></function>",
    ] {
        is_content(QwenXml, malformed);
    }
}

/// A value has no escapes: it ends where an argument, or the end of the call, follows in the template's layout.
#[test]
fn a_value_of_qwen_xml_may_have_tags() {
    use ToolCallFormat::QwenXml;
    let written = |value: &str| {
        format!(
            "<tool_call>\n<function=f>\n<parameter=text>\n{value}\n</parameter>\n<parameter=number>\n1\n</parameter>\n</function>\n</tool_call>"
        )
    };
    let documented = written("2").replace("<function=f>\n", "<function=f>\n<parameter=list>\n[]\n</parameter>\n");
    for value in [
        "plain",
        "",
        "\n",
        "x </tool_call> y",
        "x </parameter> y",
        "x </function> y",
        "x <tool_call> y",
        "x <think> y",
        "x </think> y",
        "a < b > c",
        "<parameter=number>\n7",
        "x\n</parameter>\ny",
        "x\n</parameter>",
        "x </parameter> <parameter=number> 7",
        "x </parameter></function></tool_call> y",
        "</function>\n</tool_call>",
        "So:\n<tool_call>\n<function=f>\n<parameter=text>\nx\n</parameter>\n</function>\n</tool_call>\nDone.",
    ] {
        let call = format!("call00000 f {}", json!({"text": value, "number": 1}));
        is(QwenXml, &written(value), "", &[&call]);
        let second = r#"call00001 f {"list":[],"text":"2","number":1}"#;
        is(QwenXml, &format!("{}\n{documented}", written(value)), "", &[&call, second]);
    }
    // Without line breaks, and with some.
    let inline = "<tool_call><function=f><parameter=text>a </parameter> b</parameter><parameter=number>1</parameter></function></tool_call>";
    is(QwenXml, inline, "", &[r#"call00000 f {"text":"a </parameter> b","number":1}"#]);
    let mixed = "<tool_call>\n<function=f>\n<parameter=text>\na</parameter>\n<parameter=number>1\n</parameter></function></tool_call>";
    is(QwenXml, mixed, "", &[r#"call00000 f {"text":"a","number":1}"#]);
    // Tags that the model left out.
    let function = "<function=f>\n<parameter=text>\na\n</parameter>\n</function>";
    let two = [r#"call00000 f {"text":"a"}"#, r#"call00001 f {"text":"a"}"#];
    is(QwenXml, &format!("<tool_call>\n{function}\n<tool_call>\n{function}"), "", &two);
    is(QwenXml, &format!("<tool_call>\n{function}\n{function}\n</tool_call>"), "", &two);
    is(QwenXml, &format!("<tool_call>\n{function}\n</tool_call>\n{function}"), function, &two[..1]);
    let open = "<tool_call>\n<function=f>\n<parameter=text>\na\n</function>\n</tool_call>";
    is(QwenXml, &format!("{open}\n<tool_call>\n{function}\n</tool_call>"), open, &two[..1]);
}

#[test]
fn a_mark_within_an_argument_is_text() {
    use ToolCallFormat::{Hermes, Llama3, Mistral};
    for value in [
        "x </tool_call> y",
        "x <think> y",
        "x </think> y",
        "x [TOOL_CALLS] y",
        "x [ARGS] y",
        "x <|python_tag|> y",
        "x; y",
        "a.call(b=\"c\")",
        "\\\"</tool_call>\\",
    ] {
        let call = format!("call00000 f {}", json!({"q": value}));
        let arguments = json!({"q": value});
        let hermes = json!({"name": "f", "arguments": arguments});
        is(Hermes, &format!("<tool_call>{hermes}</tool_call> So."), "So.", &[&call]);
        is(Mistral, &format!("[TOOL_CALLS][{hermes}]"), "", &[&call]);
        is(Mistral, &format!("[TOOL_CALLS]f[ARGS]{arguments}"), "", &[&call]);
        let llama = json!({"name": "f", "parameters": arguments});
        is(Llama3, &format!("{llama} "), "", &[&call]);
        is(Llama3, &format!("<|python_tag|>{llama}"), "", &[&call]);
        // JSON that is no call, or not whole, has no marks either.
        is_content(Llama3, &json!({"answer": value}).to_string());
        malformed(Llama3, &llama.to_string().replace("}}", ""), &[]);
        // A call that is cut off extends to the end.
        let cut = format!("<tool_call>{}", hermes.to_string().replace("\"}}", ""));
        let why =
            format!("it is not JSON: EOF while parsing a string at line 1 column {}", cut.len() - "<tool_call>".len());
        malformed(Hermes, &cut, &[(&cut, &why)]);
    }
    is(
        Llama3,
        "<|python_tag|>search.call(query=\"x </think> y\")",
        "",
        &[r#"call00000 search {"query":"x </think> y"}"#],
    );
}

#[test]
fn a_thought_is_outside_of_calls() {
    use ToolCallFormat::Hermes;
    let call = |name: &str| format!("<tool_call>{{\"name\": \"{name}\"}}</tool_call>");
    let (a, b) = (call("a"), call("b"));
    // A thought that began in the prompt holds all text before its end, whether or not it has whole calls.
    let began = format!("Shall I {a}?</think>\n");
    is(Hermes, &format!("{began}{b}"), began.trim_end(), &["call00000 b {}"]);
    is_content(Hermes, &began);
    let broken = "Shall I write <tool_call>?</think>\n";
    is(Hermes, &format!("{broken}{b}"), broken.trim_end(), &["call00000 b {}"]);
    // Calls before another thought stay calls.
    let thought = format!("<think>{a}</think>");
    is(Hermes, &format!("{a} {thought} {b} So."), &format!("{thought} So."), &["call00000 a {}", "call00001 b {}"]);
    let cut = format!("<think>Now {b}");
    is(Hermes, &format!("{a}\n{cut}"), &cut, &["call00000 a {}"]);
}

#[test]
fn llama() {
    use ToolCallFormat::Llama3;
    is(Llama3, "{\"name\": \"f\", \"parameters\": {\"a\": \"1\"}}", "", &[r#"call00000 f {"a":"1"}"#]);
    is(
        Llama3,
        "<|python_tag|>{\"name\": \"f\", \"parameters\": {}}; {\"name\": \"g\", \"arguments\": {\"x\": 1}}",
        "",
        &["call00000 f {}", r#"call00001 g {"x":1}"#],
    );
    is(
        Llama3,
        "<|python_tag|>brave_search.call(query=\"a \"b\", c\", page=\"2\")",
        "",
        &[r#"call00000 brave_search {"query":"a \"b\", c","page":"2"}"#],
    );
    for content in [
        "{\"name\": \"f\"} is how to call it",
        "I call {\"name\": \"f\", \"parameters\": {}}",
        "{\"answer\": 42}",
        "<|python_tag|>print(1)",
        "<|python_tag|>",
        "{\"name\": \"f\", \"parameters\": {}",
        "",
    ] {
        is_content(Llama3, content);
    }
}

#[test]
fn mistral() {
    use ToolCallFormat::Mistral;
    is(
        Mistral,
        "[TOOL_CALLS] [{\"name\": \"f\", \"arguments\": {\"a\": 1}, \"id\": \"abc123XYZ\"}, {\"name\": \"g\", \"arguments\": {}}]",
        "",
        &[r#"abc123XYZ f {"a":1}"#, "call00001 g {}"],
    );
    is(
        Mistral,
        "Sure. [TOOL_CALLS]f[ARGS]{\"a\": 1}[TOOL_CALLS]g[CALL_ID]id0000001[ARGS]{}",
        "Sure.",
        &[r#"call00000 f {"a":1}"#, "id0000001 g {}"],
    );
    for malformed in
        ["[TOOL_CALLS]", "[TOOL_CALLS][]", "[TOOL_CALLS] [1]", "[TOOL_CALLS]f{}", "[TOOL_CALLS]f[ARGS]{", "none"]
    {
        is_content(Mistral, malformed);
    }
}

#[test]
fn numbers_stay_as_the_model_writes_them() {
    let arguments = r#"{"x": 4.50, "y": [123456789012345678901234567890]}"#;
    let call = format!(r#"{{"name": "f", "arguments": {arguments}}}"#);
    let expected = format!("call00000 f {}", arguments.replace(' ', ""));
    for (format, reply) in [
        (ToolCallFormat::Hermes, format!("<tool_call>{call}</tool_call>")),
        (ToolCallFormat::Llama3, call.clone()),
        (ToolCallFormat::Mistral, format!("[TOOL_CALLS][{call}]")),
        (ToolCallFormat::Mistral, format!("[TOOL_CALLS]{call}")),
        (ToolCallFormat::Mistral, format!("[TOOL_CALLS]f[ARGS]{arguments}")),
        (
            ToolCallFormat::QwenXml,
            "<tool_call>\n<function=f>\n<parameter=x>\n4.50\n</parameter>\n<parameter=y>\n[123456789012345678901234567890]\n</parameter>\n</function>\n</tool_call>".into(),
        ),
    ] {
        is(format, &reply, "", &[&expected]);
    }
}

#[test]
fn ids_count_on() {
    let reply = ToolCallFormat::Hermes.parse("<tool_call>{\"name\": \"f\"}</tool_call>", &[], 41);
    assert_eq!(reply.tool_calls[0].id, "call00041");
    let message = reply.into_message();
    assert!(message.content.is_empty() && message.role == Role::Assistant && message.tool_calls.len() == 1);
}

/// A call that a template wrote is parsed as that call.
#[test]
fn calls_that_templates_write_are_read() {
    let nested = json!({"text": "a \"b\"\n</tool_call>", "list": [1, 2.5, {"k": null}], "number": 1e-7, "é": "🦀"});
    let plain = json!({"text": "x", "number": 3});
    for (name, several) in [
        ("qwen2_5", true),
        ("qwen3", true),
        ("qwen3_5_think", true),
        ("header_json_tools", false),
        ("mistral_v3", true),
        ("mistral_small", true),
        ("glm4moe", true),
        ("glm4_7", true),
        ("gptoss", false),
        ("minimax_m2", true),
        ("kimi_k2", true),
        ("deepseekv3", true),
        ("deepseek_v3_1", true),
        ("deepseek_v3_2", true),
        ("deepseek_v4", true),
        ("seed_oss", true),
        ("gemma4", true),
        ("function_gemma", true),
        ("pythonic", true),
    ] {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("chat_template.jinja"), source(name)).unwrap();
        std::fs::write(dir.path().join("tokenizer_config.json"), r#"{"bos_token": "<s>", "eos_token": "</s>"}"#)
            .unwrap();
        let template = ChatTemplate::load(dir.path()).unwrap();
        let format = template.tool_call_format().unwrap();
        let call = |id: &str, arguments: &Value| ToolCall {
            id: id.into(),
            name: "f".into(),
            arguments: arguments.to_string(),
        };
        let ids = if name == "kimi_k2" { ["functions.f:0", "functions.f:1"] } else { ["call00000", "call00001"] };
        let mut calls = vec![call(ids[0], &nested)];
        if several {
            calls.push(call(ids[1], &plain));
        }
        let user = Message::new(Role::User, "?");
        // The beginning of a thought, or its end, is part of the prompt.
        let variables = json!({"thinking": true, "enable_thinking": name != "glm4_7"});
        let variables = if name.starts_with("deepseek") || name.starts_with("glm") { variables } else { json!({}) };
        let render = |messages: &[Message], add_generation_prompt| {
            let variables = variables.as_object().unwrap().clone();
            let options = RenderOptions { add_generation_prompt, variables, ..RenderOptions::default() };
            template.render(messages, &options).unwrap()
        };
        for content in ["", "Let me look."] {
            // These templates write no content beside calls.
            if !content.is_empty() && matches!(name, "gptoss" | "header_json_tools" | "mistral_v3" | "pythonic") {
                continue;
            }
            let mut asked = Message::new(Role::Assistant, content);
            asked.tool_calls = calls.clone();
            let whole = render(&[user.clone(), asked], false);
            let prompt = render(std::slice::from_ref(&user), true);
            let common = prompt.bytes().zip(whole.bytes()).take_while(|(left, right)| left == right).count();
            // The beginning of another mark is not common.
            let common = whole[..common].strip_suffix('<').map_or(common, str::len);
            let written = whole[common..].trim_end();
            let ends = [
                "</s>",
                "<|im_end|>",
                "<|eot_id|>",
                "<|eot|>",
                "<|call|>",
                "[e~[",
                "<｜end▁of▁sentence｜>",
                "<seed:eos>",
                "<turn|>",
                "<|tool_response>",
                "<end_of_turn>",
            ];
            let written = ends.iter().fold(written, |text, end| text.trim_end_matches(end));
            let reply = format.parse(written, &tools(), 0);
            assert_eq!(reply.tool_calls.len(), calls.len(), "{name}: {written}");
            for (read, made) in reply.tool_calls.iter().zip(&calls) {
                assert_eq!((&read.id, &read.name), (&made.id, &made.name), "{name}");
                let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
                assert_eq!(value(&read.arguments), value(&made.arguments), "{name}: {written}");
            }
            let left = reply.content.rsplit("</think>").next().unwrap().trim();
            assert_eq!(left, content, "{name}: {written}");
            let message = reply.into_message();
            assert_eq!(message.content.is_empty(), message.text().is_empty());
            assert!(message.content.iter().all(|part| matches!(part, ContentPart::Text(_))));
        }
    }
}

/// The texts that cannot be parsed as calls, with the reasons.
#[track_caller]
fn malformed(format: ToolCallFormat, reply: &str, expected: &[(&str, &str)]) {
    let parsed = format.parse(reply, &tools(), 0);
    let found: Vec<(&str, &str)> =
        parsed.malformed.iter().map(|call| (call.text.as_str(), call.why.as_str())).collect();
    assert_eq!(found, expected, "{reply}");
    for (text, _) in expected {
        assert!(parsed.content.contains(text), "{:?}", parsed.content);
    }
}

#[test]
fn a_malformed_call_says_why() {
    use ToolCallFormat::{Hermes, Llama3, Mistral, QwenXml};
    const NO_OBJECT: &str = "a call is a JSON object with `name` and `arguments`";
    for (body, why) in [
        ("", "it is not JSON: EOF while parsing a value at line 1 column 0"),
        ("f(1)", "it is not JSON: expected ident at line 1 column 2"),
        (r#"{"name": "f", "arguments": {"a": 1}"#, "it is not JSON: EOF while parsing an object at line 1 column 35"),
        ("[1]", NO_OBJECT),
        (r#"{"arguments": {}}"#, "it has no `name`"),
        (r#"{"name": 1}"#, "`name` is not the name of a function"),
        (r#"{"name": "f", "arguments": [1]}"#, "`arguments` is not a JSON object"),
        (r#"{"name": "f", "arguments": "a"}"#, "`arguments` is not a JSON object"),
    ] {
        let call = format!("<tool_call>{body}</tool_call>");
        malformed(Hermes, &format!("I look. {call} So."), &[(call.as_str(), why)]);
        // Cut off.
        malformed(Hermes, format!("<tool_call>{body}").trim(), &[(&format!("<tool_call>{body}"), why)]);
        if body.starts_with('{') {
            malformed(Llama3, &format!("<|python_tag|>{body}"), &[(&format!("<|python_tag|>{body}"), why)]);
        }
        if body.starts_with(r#"{"name""#) && body.ends_with("]}") {
            malformed(Llama3, body, &[(body, why)]);
        }
    }
    // Other calls beside it are parsed, and a thought contains none.
    let good = r#"<tool_call>{"name": "f"}</tool_call>"#;
    malformed(
        Hermes,
        &format!("<think><tool_call></think>{good}<tool_call>no</tool_call>"),
        &[("<tool_call>no</tool_call>", "it is not JSON: expected ident at line 1 column 2")],
    );
    malformed(Hermes, good, &[]);
    malformed(Hermes, "{\"name\": 1}", &[]);

    for (body, why) in [
        ("{\"name\": \"f\"}", "it does not begin with `<function=NAME>`"),
        ("<function=f>", "it does not end with `</function>`"),
        ("<function=></function>", "the function has no name"),
        ("<function=f>text</function>", "something other than `<parameter=NAME>` stands between its arguments"),
        ("<function=f><parameter=text>1</function>", "the argument `text` does not end with `</parameter>`"),
    ] {
        let call = format!("<tool_call>{body}</tool_call>");
        malformed(QwenXml, &call, &[(call.as_str(), why)]);
    }

    for (reply, why) in [
        ("<|python_tag|>", "nothing follows the mark"),
        ("<|python_tag|>print(1)", "it is not JSON: expected value at line 1 column 1"),
        ("<|python_tag|>{\"name\": \"f\"} and", "something other than `;` follows a call"),
    ] {
        malformed(Llama3, reply, &[(reply, why)]);
    }
    for content in ["{\"answer\": 42}", "{\"name\": \"f\"", "{\"name\": \"f\"} is how", "[1]", ""] {
        malformed(Llama3, content, &[]);
    }

    for (call, why) in [
        ("[TOOL_CALLS]", "`[ARGS]` does not follow the name"),
        ("[TOOL_CALLS][]", "the list of calls is empty"),
        ("[TOOL_CALLS] [1]", NO_OBJECT),
        ("[TOOL_CALLS] 1", NO_OBJECT),
        ("[TOOL_CALLS] [{\"name\": \"f\"", "it is not JSON: EOF while parsing an object at line 1 column 14"),
        ("[TOOL_CALLS]f{}", "`[ARGS]` does not follow the name"),
        ("[TOOL_CALLS]f[ARGS]{", "it is not JSON: EOF while parsing an object at line 1 column 1"),
        ("[TOOL_CALLS]f[ARGS][]", "the arguments are not a JSON object"),
        ("[TOOL_CALLS][ARGS]{}", "the function has no name"),
    ] {
        malformed(Mistral, &format!("Sure. {call}"), &[(call, why)]);
    }
    malformed(Mistral, "none", &[]);
}
