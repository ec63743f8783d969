//! Conversations that continue after a reply as it was generated, with every chat template of the fixtures.

use crate::families::{ends, model, model_with, names, options, prompt, tools};
use gavel_data::{Message, Role};
use gavel_text::{History, RenderOptions, TextError, TextModel};
use serde_json::{Value, json};

/// How templates treat earlier replies after a tool's answer, and after a user's message.
const HISTORIES: [(&str, &str, &str); 30] = [
    ("chatml", "kept", "kept"),
    ("constructs", "what comes before", "what comes before"),
    ("deepseek_r1_distill", "what was thought", "what was thought"),
    ("deepseek_v3_1", "kept", "kept"),
    ("deepseek_v3_2", "kept", "kept"),
    ("deepseek_v4", "kept", "kept"),
    ("deepseekv3", "kept", "what was thought"),
    ("function_gemma", "kept", "kept"),
    ("gemma4", "writes replies in another way", "what was thought"),
    ("glm4_7", "kept", "what was thought"),
    ("glm4moe", "kept", "what was thought"),
    ("gptoss", "kept", "what was thought"),
    ("header_json_tools", "kept", "kept"),
    ("kimi_k2", "kept", "kept"),
    ("minimax_m2", "kept", "what was thought"),
    ("mistral_small", "kept", "kept"),
    // The template moves tools to the last question.
    ("mistral_v3", "kept", "what comes before"),
    ("phi3", "it leaves out messages of the role `tool`", "kept"),
    ("pythonic", "kept", "kept"),
    ("qwen2_5", "kept", "kept"),
    ("qwen2_5_training", "kept", "kept"),
    ("qwen3", "kept", "what was thought"),
    ("qwen3_5_think", "kept", "what was thought"),
    ("qwen3_instruct_2507", "kept", "kept"),
    ("qwen3_training", "kept", "kept"),
    ("seed_oss", "kept", "kept"),
    ("smolvlm", "kept", "kept"),
    ("turns", "it refuses the conversation: Question 3 is out of turn", "kept"),
    ("turns_with_parts", "it refuses the conversation: Turn 3 is not the tool's", "kept"),
    ("zephyr", "it leaves out messages of the role `tool`", "kept"),
];

#[track_caller]
fn is(history: &History, expected: &str) {
    match history {
        History::Kept => assert_eq!(expected, "kept"),
        History::Rewritten { what } => {
            assert!(what.contains("chat_template.jinja: the chat template ") && what.contains(expected), "{what}")
        }
        History::Refused { what } => {
            assert!(
                what.contains("chat_template.jinja") && what.contains("\nhint: ") && what.contains(expected),
                "{what}"
            )
        }
    }
}

#[test]
fn what_a_template_makes_of_its_history_is_known_before() {
    assert_eq!(HISTORIES.map(|(name, ..)| name.to_owned()).to_vec(), names());
    let tools = tools();
    for (name, after_tool, after_user) in HISTORIES {
        let check = model(name).check_history(&prompt(), &options(&tools)).unwrap();
        is(&check.after_tool, after_tool);
        is(&check.after_user, after_user);
    }
    // An empty thought before a reply that the template leaves out of its history does not count.
    for name in ["qwen3", "qwen3_5_think", "glm4moe"] {
        let mut options = options(&tools);
        options.variables.insert("enable_thinking".into(), false.into());
        let check = model(name).check_history(&prompt(), &options).unwrap();
        assert_eq!((check.after_tool, check.after_user), (History::Kept, History::Kept), "{name}");
    }
    let refused = model_with("{{ raise_exception('no') }}", &["</s>"]).check_history(&prompt(), &options(&tools));
    assert!(matches!(refused, Err(TextError::Refused { .. })));
}

fn common(left: &str, right: &str) -> usize {
    left.chars().zip(right.chars()).take_while(|(left, right)| left == right).map(|(char, _)| char.len_utf8()).sum()
}

/// A reply as the template writes a last one: its tokens, and the message parsed from it.
fn reply(
    name: &str,
    model: &TextModel,
    history: &[Message],
    answered: &Message,
    tools: &[Value],
) -> Result<(Vec<u32>, Message), TextError> {
    let mut message = Message::new(Role::Assistant, "Let me see.");
    if model.template.source().unwrap().contains("</think>") {
        message.reasoning = Some("Hm.".into());
    }
    let calls: usize = history.iter().map(|message| message.tool_calls.len()).sum();
    if answered.role == Role::Tool && model.template.tool_call_format().is_some() {
        message.tool_calls = vec![gavel_data::ToolCall {
            id: answered.tool_call_id.clone().unwrap(),
            name: "weather".into(),
            arguments: json!({"city": "Zürich"}).to_string(),
        }];
    }
    let asked = model.template.render(history, &options(tools))?;
    let told = RenderOptions { add_generation_prompt: false, ..options(tools) };
    let told = model.template.render(&[history, &[message]].concat(), &told)?;
    let written = &told[common(&asked, &told)..];
    let written = match ends(name).iter().filter_map(|end| written.find(end)).min() {
        Some(at) => &written[..at],
        None => written,
    };
    let ids = model.tokenizer.encode(written).unwrap();
    let text = model.tokenizer.decode(&ids).unwrap();
    let message = model.reply(&ids, text, tools, calls).unwrap().into_message();
    Ok((ids, message))
}

/// The tokens of two turns, each answered by `answer`, and the template's text of the same conversation.
fn converse(
    name: &str,
    model: &TextModel,
    answer: &dyn Fn(usize) -> Message,
    end: Option<&str>,
) -> Result<(String, String), TextError> {
    let (tools, mut messages) = (tools(), prompt());
    let mut ids = model.prompt_ids_with(&messages, &options(&tools))?;
    for turn in 0..2 {
        let new = answer(turn);
        let (mut response, message) = reply(name, model, &messages, &new, &tools)?;
        response.extend(end.map(|end| model.tokenizer.token_id(end).unwrap()));
        let following =
            model.continuation_ids(&messages, &message, &response, std::slice::from_ref(&new), &options(&tools))?;
        ids.extend(response);
        ids.extend(following);
        messages.extend([message, new]);
    }
    Ok((model.tokenizer.decode_with(&ids, false)?, model.template.render(&messages, &options(&tools))?))
}

#[test]
fn a_conversation_that_continues_is_what_the_template_writes() {
    let tool = |turn: usize| Message {
        tool_call_id: Some(format!("call{turn:05}")),
        name: Some("weather".into()),
        ..Message::new(Role::Tool, format!("It is {turn} degrees."))
    };
    let user = |turn: usize| Message::new(Role::User, format!("And on day {turn}?"));
    for (name, after_tool, after_user) in HISTORIES {
        let model = model(name);
        for (answer, history) in [(&tool as &dyn Fn(usize) -> Message, after_tool), (&user, after_user)] {
            let written = match (name, answer(0).role) {
                ("gptoss", Role::Tool) => "<|call|>",
                ("glm4_7" | "glm4moe", Role::Tool) => "<|observation|>",
                ("glm4_7" | "glm4moe", _) => "<|user|>",
                _ => ends(name)[0],
            };
            // A reply ends with a token, or is cut off.
            for end in [Some(written), None] {
                match converse(name, &model, answer, end) {
                    Ok((text, whole)) if history == "kept" && name != "deepseekv3" => {
                        // SmolVLM's puts a space before a content that begins with one.
                        // The prompt of deepseekv3 alone opens a thought; that of its successors has an empty one.
                        let bare = |text: &str| text.replace("<think></think>", "</think>");
                        let whole = whole.replace("Assistant:  ", "Assistant: ");
                        assert_eq!(bare(&text), bare(&whole), "{name}, ended by {end:?}")
                    }
                    Ok((text, _)) => assert!(text.contains(answer(0).text().as_str()), "{name}: {text}"),
                    Err(TextError::Continuation { path, what }) => {
                        assert!(path.ends_with("chat_template.jinja") && what == history, "{name}: {what}")
                    }
                    // The reply has no calls that Gavel could read.
                    Err(error) => assert!(name == "gptoss", "{name}: {error}"),
                }
            }
        }
    }
}

#[test]
fn a_turn_ends_with_the_token_that_the_policy_wrote() {
    let (tools, call) = (tools(), |id: &str| gavel_data::ToolCall {
        id: id.into(),
        name: "weather".into(),
        arguments: json!({"city": "Zürich"}).to_string(),
    });
    let called = |calls: &[&str]| Message {
        content: Vec::new(),
        tool_calls: calls.iter().map(|id| call(id)).collect(),
        ..Message::new(Role::Assistant, "")
    };
    let answer = |id: &str| Message { tool_call_id: Some(id.into()), ..Message::new(Role::Tool, "<3>") };
    let follows = |name: &str, response: &Message, end: &str, new: &[Message], options: &RenderOptions<'_>| {
        let model = model(name);
        let ids = [7, model.tokenizer.token_id(end).unwrap()];
        let ids = model.continuation_ids(&prompt(), response, &ids, new, options).unwrap();
        model.tokenizer.decode_with(&ids, false).unwrap()
    };
    let one = [answer("call00000")];
    let ask = "<|start_header_id|>assistant<|end_header_id|>\n\n";
    let observed = "<|start_header_id|>ipython<|end_header_id|>\n\n\"<3>\"";
    let plain = options(&tools);
    let mut builtin = options(&tools);
    builtin.variables.insert("builtin_tools".into(), json!(["search"]));
    // With built-in tools, a message with a call ends with a different token.
    assert_eq!(
        follows("header_json_tools", &called(&["call00000"]), "<|eot_id|>", &one, &plain),
        format!("{observed}<|eot_id|>{ask}")
    );
    assert_eq!(
        follows("header_json_tools", &called(&["call00000"]), "<|eom_id|>", &one, &builtin),
        format!("{observed}<|eot_id|>{ask}")
    );
    // If the template takes only one call, several are still answered.
    let (two, both) = (called(&["call00000", "call00001"]), [answer("call00000"), answer("call00001")]);
    assert_eq!(
        follows("header_json_tools", &two, "<|eot_id|>", &both, &plain),
        format!("{observed}<|eot_id|>{observed}<|eot_id|>{ask}")
    );
    assert_eq!(
        follows("gptoss", &called(&["call00000"]), "<|call|>", &one, &plain),
        "<|start|>functions.weather to=assistant<|channel|>commentary<|message|>\"<3>\"<|end|><|start|>assistant"
    );
    // The answer to a call that could not be parsed follows a reply without calls.
    let unread = Message::new(Role::Assistant, "f(");
    assert_eq!(
        follows("gptoss", &unread, "<|call|>", &one, &plain),
        "<|start|>functions.weather to=assistant<|channel|>commentary<|message|>\"<3>\"<|end|><|start|>assistant"
    );
    assert_eq!(
        follows("mistral_v3", &unread, "</s>", &one, &plain),
        "[TOOL_RESULTS] {\"content\": <3>, \"call_id\": \"call00000\"}[/TOOL_RESULTS]"
    );
    assert_eq!(
        follows("deepseekv3", &called(&["call00000"]), "<｜end▁of▁sentence｜>", &one, &plain),
        "<｜tool▁outputs▁begin｜><｜tool▁output▁begin｜><3><｜tool▁output▁end｜><｜tool▁outputs▁end｜>"
    );
    // A token other than the template's ended the reply; the turn still ends.
    assert_eq!(
        follows("qwen2_5", &unread, "<|endoftext|>", &[Message::new(Role::User, "?")], &plain),
        "<|im_end|>\n<|im_start|>user\n?<|im_end|>\n<|im_start|>assistant\n"
    );
    // The prompt for the next reply comes with its prefix.
    let mut quick = options(&tools);
    quick.variables.insert("enable_thinking".into(), false.into());
    for (name, options, prefix) in
        [("qwen3_5_think", &plain, "<think>\n"), ("qwen3", &quick, "<think>\n\n</think>\n\n")]
    {
        let text = follows(name, &called(&["call00000"]), "<|im_end|>", &one, options);
        assert_eq!(
            text,
            format!(
                "\n<|im_start|>user\n<tool_response>\n<3>\n</tool_response><|im_end|>\n<|im_start|>assistant\n{prefix}"
            )
        );
    }
}
