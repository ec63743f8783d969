//! Which tokens of a row are learned.

use super::*;
use crate::episode_kind::EpisodeKinds;
use crate::rows::prompts::prompts;
use gavel_config::Config;
use gavel_data::DatasetReader;
use serde_json::{Value, json};

const TEMPLATE: &str = "{% for tool in tools or [] %}<{{ tool.function.name }}>{% endfor %}{{ messages[0].content }}{{ ' ' ~ (mood or 'none') if mood is defined }}:";

/// ChatML, with every part that an answer may have.
const CALLS: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.reasoning_content or '' }}{{ message.content or '' }}{% for call in message.tool_calls or [] %}<call>{{ call.function.name }} {{ call.function.arguments | tojson }}{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

/// A template whose turns end with a different token than texts.
const TURNS: &str = "{% for message in messages %}{{ message.role }}:{{ message.content }}<|pad|>\n{% endfor %}{% if add_generation_prompt %}assistant:{% endif %}";

/// A byte-level model with this template, whose texts end at `<|im_end|>`
/// and the tokens `ends`.
fn model(folder: &Path, template: &str, ends: &[u32]) -> TextModel {
    TextModel::byte_level().save(folder).unwrap();
    std::fs::write(folder.join("chat_template.jinja"), template).unwrap();
    let generation = json!({"eos_token_id": ends, "pad_token_id": 0});
    std::fs::write(folder.join("generation_config.json"), generation.to_string()).unwrap();
    TextModel::load(folder).unwrap()
}

fn config(folder: &Path, overlong: &str, rows: &[Value]) -> Config<toml::Table> {
    let data = folder.join("rows.jsonl");
    std::fs::write(&data, rows.iter().map(|row| format!("{row}\n")).collect::<String>()).unwrap();
    let data = json!({"train": data, "overlong_prompts": overlong});
    let config = json!({"model": {"path": "m"}, "data": data, "rollout": {"max_tokens": 8}, "train": {}});
    serde_json::from_value(config).unwrap()
}

fn read(config: &Config<toml::Table>) -> [Result<DatasetRows<'_>>; 1] {
    let dataset = &config.data.train.0[0].path;
    let rows = DatasetReader::open(dataset.path()).unwrap().map(|row| Ok(row?));
    [Ok(DatasetRows { dataset, weight: None, rows: Box::new(rows) })]
}

/// What the template makes of each row, for `gavel train` and `gavel sft`.
fn rendered(rows: &[Value]) -> Result<[Vec<String>; 2]> {
    let folder = tempfile::tempdir().unwrap();
    let text = model(folder.path(), TEMPLATE, &[2]);
    let config = config(folder.path(), "error", rows);
    let limit = PromptLimit::new(&config.data, 512, 8).unwrap();
    let prompts = prompts(read(&config), "train", &text, limit, &EpisodeKinds::single())?.rows.into_vec()?;
    let rows = sft_rows(read(&config), &text, limit, &EpisodeKinds::single(), Turns::Last)?.drawable.rows.into_vec()?;
    let decode = |ids: &[u32]| text.tokenizer.decode(ids).unwrap();
    Ok([
        prompts.iter().map(|prompt| decode(&prompt.ids)).collect(),
        rows.iter().map(|placed| decode(&placed.row.prompt)).collect(),
    ])
}

/// Prompt and response of each row for `gavel sft`, special tokens included.
fn imitated(template: &str, ends: &[u32], positions: i64, overlong: &str, rows: &[Value]) -> Result<Vec<[String; 2]>> {
    imitated_turns(template, ends, positions, overlong, rows, Turns::Last)
}

/// The same with these turns.
fn imitated_turns(
    template: &str,
    ends: &[u32],
    positions: i64,
    overlong: &str,
    rows: &[Value],
    turns: Turns,
) -> Result<Vec<[String; 2]>> {
    let folder = tempfile::tempdir().unwrap();
    let text = model(folder.path(), template, ends);
    let config = config(folder.path(), overlong, rows);
    let limit = PromptLimit::new(&config.data, positions, 8).unwrap();
    let rows = sft_rows(read(&config), &text, limit, &EpisodeKinds::single(), turns)?.drawable.rows.into_vec()?;
    let decode = |ids: &[u32]| text.tokenizer.decode_with(ids, false).unwrap();
    Ok(rows.iter().map(|PlacedRow { row, .. }| [decode(&row.prompt), decode(&row.response)]).collect())
}

/// A row with this answer.
fn answered(answer: Value) -> Value {
    json!({"messages": [{"role": "user", "content": "2+2"}, answer]})
}

fn call() -> Value {
    let call = json!({"id": "c", "type": "function", "function": {"name": "add", "arguments": {"a": 2}}});
    answered(json!({"role": "assistant", "content": "", "reasoning_content": "Hm.", "tool_calls": [call]}))
}

#[test]
fn the_whole_turn_of_an_answer_is_learned() {
    let rows = [call(), json!({"prompt": "2+2", "response": "4"}), json!({"prompt": "2+2", "response": ""})];
    let prompt = "<|im_start|>user\n2+2<|im_end|>\n<|im_start|>assistant\n";
    let found = imitated(CALLS, &[2], 512, "error", &rows).unwrap();
    assert_eq!(found, [[prompt, "Hm.<call>add {\"a\": 2}<|im_end|>"], [prompt, "4<|im_end|>"], [prompt, "<|im_end|>"]]);
}

#[test]
fn a_turn_ends_where_the_model_stops() {
    let ends = |template: &str, ends: &[u32]| {
        let row = json!({"prompt": "2+2", "response": "4"});
        let [prompt, response] = imitated(template, ends, 512, "error", &[row]).unwrap().remove(0);
        assert_eq!(prompt, "user:2+2<|pad|>\nassistant:");
        response
    };
    assert_eq!(ends(TURNS, &[2, 0]), "4<|pad|>");
    // Here it does not stop at the turn's end.
    assert_eq!(ends(TURNS, &[2]), "4<|pad|>\n<|im_end|>");
    let both = TURNS.replace("{% endif %}", "{% else %}<|im_end|>{% endif %}");
    assert_eq!(ends(&both, &[2, 0]), "4<|pad|>");
}

#[test]
fn a_template_may_write_more_before_an_answer_that_it_asks_for() {
    let template = TURNS.replace("assistant:", "assistant:<think>");
    let row = |answer: &str| json!({"prompt": "2+2", "response": answer});
    let found = imitated(&template, &[2, 0], 512, "error", &[row("4"), row("two</think>4")]).unwrap();
    let (prompt, thinking) = ("user:2+2<|pad|>\nassistant:", "user:2+2<|pad|>\nassistant:<think>");
    assert_eq!(found, [[prompt, "4<|pad|>"], [thinking, "two</think>4<|pad|>"]]);
}

#[test]
fn the_template_sees_the_variables_of_the_row() {
    let row = |kwargs: Value| json!({"prompt": "2+2", "response": "4", "chat_template_kwargs": kwargs});
    let rows = [row(json!({"mood": "kindly"})), row(json!("{\"mood\": null}")), row(json!(null))];
    let [prompts, sft] = rendered(&rows).unwrap();
    assert_eq!(prompts, ["2+2 kindly:", "2+2 none:", "2+2:"]);
    assert_eq!(sft, prompts);
    for wrong in [json!([]), json!({"messages": []}), json!("{")] {
        let error = rendered(&[row(json!({})), row(wrong)]).unwrap_err().to_string();
        assert!(error.contains("rows.jsonl, line 2: `chat_template_kwargs` must be an object"), "{error}");
    }
}

#[test]
fn nothing_of_an_answer_is_left_out() {
    let error = |template: &str, row: Value| imitated(template, &[2], 512, "error", &[row]).unwrap_err().to_string();
    let said = error(TURNS, call());
    assert!(said.contains("rows.jsonl, line 1: the chat template leaves out the answer's tool calls"), "{said}");
    let thought = answered(json!({"role": "assistant", "content": "4", "reasoning_content": "Hm."}));
    let said = error(TURNS, thought);
    assert!(said.contains("line 1: the chat template leaves out the answer's reasoning"), "{said}");
    // This template writes only the last message.
    let last = "{{ messages[-1].content }}:";
    let said = error(last, call());
    assert!(said.contains("line 1: the chat template writes the prompt differently"), "{said}");
    // A text needs no template.
    let row = json!({"prompt": "2+2", "response": "4"});
    let alone = [["2+2:", "4<|im_end|>"]];
    assert_eq!(imitated(last, &[2], 512, "error", std::slice::from_ref(&row)).unwrap(), alone);
    let refusing = "{% if messages[-1].role != 'user' %}{{ raise_exception('ask') }}{% endif %}2+2:";
    assert_eq!(imitated(refusing, &[2], 512, "error", &[row]).unwrap(), alone);
    let said = error(refusing, call());
    assert!(said.contains("the chat template refuses the conversation: ask\nhint: "), "{said}");
}

#[test]
fn prompt_and_response_fit_into_the_positions_together() {
    let row = |length: usize| json!({"prompt": "2+2", "response": "x".repeat(length)});
    let prompts = |overlong: &str, longest: usize| {
        let rows = imitated(TEMPLATE, &[2], 16, overlong, &[row(11), row(longest)])?;
        Ok::<_, PipelineError>(rows.into_iter().map(|[prompt, _]| prompt).collect::<Vec<_>>())
    };
    assert_eq!(prompts("error", 11).unwrap(), ["2+2:", "2+2:"]);
    let said = prompts("error", 13).unwrap_err().to_string();
    let expected = "line 2: the prompt has 4 tokens and its response 14, at most 16 fit together\nhint: set data.overlong_prompts to \"drop\" or \"truncate\"";
    assert!(said.contains(expected), "{said}");
    assert_eq!(prompts("drop", 13).unwrap(), ["2+2:"]);
    assert_eq!(prompts("truncate", 13).unwrap(), ["2+2:", "2:"]);
    // There is no room for any prompt.
    let said = prompts("truncate", 15).unwrap_err().to_string();
    assert!(said.contains("its response 16, at most 16 fit together"), "{said}");
}

#[test]
fn the_template_sees_the_tools_of_the_row() {
    let tools = json!([{"type": "function", "function": {"name": "add", "parameters": {}}}]);
    let row = |tools| json!({"prompt": "2+2", "response": "4", "tools": tools});
    let [prompts, sft] = rendered(&[row(tools.clone()), row(tools.to_string().into()), row(json!(null))]).unwrap();
    assert_eq!(prompts, ["<add>2+2:", "<add>2+2:", "2+2:"]);
    assert_eq!(sft, prompts);
}

#[test]
fn malformed_tools_name_the_file_and_the_line() {
    let row = |tools| json!({"prompt": "2+2", "response": "4", "tools": tools});
    let error = rendered(&[row(json!([])), row(json!([{"tool": "add"}]))]).unwrap_err().to_string();
    assert!(error.contains("rows.jsonl, line 2: `tools` must be a list of"), "{error}");
}

#[test]
fn of_a_conversation_the_last_turn_is_learned() {
    let (user, said) = (
        |text: &str| json!({"role": "user", "content": text}),
        |text: &str| json!({"role": "assistant", "content": text}),
    );
    let tool = json!({"role": "tool", "content": "5"});
    let calls = call()["messages"][1].clone();
    let turn = |role: &str, text: &str| format!("<|im_start|>{role}\n{text}<|im_end|>\n");
    let ask = "<|im_start|>assistant\n";
    let learned = |row: Value| imitated(CALLS, &[2], 512, "error", &[row]);

    let several = json!({"messages": [user("a"), said("b"), user("c"), said("d")]});
    let before = turn("user", "a") + &turn("assistant", "b") + &turn("user", "c") + ask;
    assert_eq!(learned(several).unwrap(), [[before.as_str(), "d<|im_end|>"]]);

    // All turns, on demand; a question at the end has no answer to learn.
    let all = |row: Value| imitated_turns(CALLS, &[2], 512, "error", &[row], Turns::All);
    let several = json!({"messages": [user("a"), said("b"), user("c"), said("d"), user("e")]});
    let first = turn("user", "a") + ask;
    assert_eq!(all(several).unwrap(), [[first.as_str(), "b<|im_end|>"], [before.as_str(), "d<|im_end|>"]]);

    // Each message of the assistant in the turn, with the call and its result before the second one.
    let called = "Hm.<call>add {\"a\": 2}";
    let first = turn("user", "2+2") + ask;
    let second = turn("user", "2+2") + &turn("assistant", called) + &turn("tool", "5") + ask;
    let expected = [[first, format!("{called}<|im_end|>")], [second, "5!<|im_end|>".into()]];
    let messages = json!([user("2+2"), calls, tool, said("5!")]);
    assert_eq!(learned(json!({"messages": messages})).unwrap(), expected);

    // The same in TRL's form, in which a completion may have several turns.
    let completion = json!({"prompt": [user("2+2")], "completion": [calls, tool, said("5!")]});
    assert_eq!(learned(completion).unwrap(), expected);
    let trl = json!({"prompt": [user("a")], "completion": [said("b"), user("c"), said("d")]});
    let responses: Vec<String> = learned(trl).unwrap().into_iter().map(|[_, response]| response).collect();
    assert_eq!(responses, ["b<|im_end|>", "d<|im_end|>"]);
    let texts = learned(json!({"prompt": "a", "completion": "b"})).unwrap();
    assert_eq!(texts, [[turn("user", "a") + ask, "b<|im_end|>".into()]]);

    let error = |row: Value| learned(row).unwrap_err().to_string();
    let asks = error(json!({"messages": [user("a"), said("b"), user("c")]}));
    assert!(asks.contains("rows.jsonl, line 1: `messages` does not end with a message of the assistant"), "{asks}");
    let answers = error(json!({"messages": [said("b")]}));
    assert!(answers.contains("line 1: the row has no prompt before the response"), "{answers}");
}

#[test]
fn a_row_whose_bytes_cannot_fit_is_not_tokenised() {
    let folder = tempfile::tempdir().unwrap();
    let text = model(folder.path(), TEMPLATE, &[2]);
    let long = "x".repeat(2 << 20);
    for (row, what) in [
        (json!({"prompt": long, "response": "4"}), "the prompt has 2097153 bytes, and the 87382 tokens that fit"),
        (
            json!({"prompt": "2+2", "response": long}),
            "bytes, and the 87382 tokens that fit have at most 1048584\nhint: set",
        ),
    ] {
        let read_with = |overlong: &str| {
            let config = config(folder.path(), overlong, &[row.clone(), json!({"prompt": "1+1", "response": "2"})]);
            let limit = PromptLimit::new(&config.data, 512, 8).unwrap();
            let kinds = EpisodeKinds::single();
            let rows = sft_rows(read(&config), &text, limit, &kinds, Turns::Last).map(|rows| rows.drawable.rows.len());
            (rows, prompts(read(&config), "train", &text, limit, &kinds).map(|prompts| prompts.rows.len()))
        };
        let (rows, prompts) = read_with("error");
        let error = rows.unwrap_err().to_string();
        assert!(error.contains("rows.jsonl, line 1: ") && error.contains(what), "{error}");
        let is_prompt = row["response"] == "4";
        assert_eq!(prompts.is_err(), is_prompt);
        assert!(prompts.map_or_else(|error| error.to_string().contains("bytes, and the "), |count| count == 2));
        let (rows, prompts) = read_with("drop");
        assert_eq!((rows.unwrap(), prompts.unwrap()), (1, if is_prompt { 1 } else { 2 }));
    }
}
