//! Rows to imitate as token ids: a prompt, and the whole turn that answers it.

use crate::config::{Dataset, Overlong};
use crate::error::{PipelineError, Result};
use crate::prompts::{PromptLimit, prompt_ids, usable};
use gavel_data::{Message, Row, Task};
use gavel_text::{RenderOptions, TextModel, Tokenizer};
use gavel_train::SftRow;
use std::path::Path;

/// The rows of a dataset to imitate: `prompt` with `response`, or `messages`.
pub(crate) fn sft_rows(rows: Vec<Row>, dataset: &Dataset, text: &TextModel, limit: PromptLimit) -> Result<Vec<SftRow>> {
    let path = dataset.path();
    let read = |row: Row| {
        let place = row.place.clone();
        let bad = |what: String| PipelineError::BadRow { path: path.to_owned(), place: place.clone(), what };
        let sample = gavel_scoring::completion(row, "train").map_err(|error| bad(error.to_string()))?;
        if sample.task.prompt.is_empty() {
            return Err(bad("the row has no prompt before the response".into()));
        }
        let answers: Vec<&Message> = sample.trajectories.iter().flat_map(|trajectory| &trajectory.messages).collect();
        let [answer] = answers[..] else {
            return Err(bad(
                "only one response is learned from, and this row has several messages after its prompt".into()
            ));
        };
        let row = sft_row(&sample.task, answer, text).map_err(bad)?;
        apply_limit(limit, row, path, &place)
    };
    usable(rows, dataset, read)
}

/// Applies the limit to a row to imitate, which needs positions for its response too. The response is never cut: its
/// end is what is to be learned.
fn apply_limit(limit: PromptLimit, row: SftRow, path: &Path, place: &str) -> Result<Option<SftRow>> {
    let SftRow { prompt, response } = row;
    let Some(mut prompt) = limit.apply(prompt, path, place)? else { return Ok(None) };
    let excess = (prompt.len() + response.len()).saturating_sub(limit.positions);
    if excess == 0 {
        return Ok(Some(SftRow { prompt, response }));
    }
    match limit.overlong {
        Overlong::Drop => Ok(None),
        Overlong::Truncate if excess < prompt.len() => Ok(Some(SftRow { prompt: prompt.split_off(excess), response })),
        Overlong::Truncate | Overlong::Error => Err(PipelineError::BadRow {
            path: path.to_owned(),
            place: place.to_owned(),
            what: format!(
                "the prompt has {} tokens and its response {}, at most {} fit together\nhint: set data.overlong_prompts to \"drop\"{}",
                prompt.len(),
                response.len(),
                limit.positions,
                if excess < prompt.len() { " or \"truncate\"" } else { "" }
            ),
        }),
    }
}

/// A prompt, and what the chat template writes of the answer to it, to the end
/// of the turn.
fn sft_row(task: &Task, answer: &Message, text: &TextModel) -> std::result::Result<SftRow, String> {
    let tools = task.reference.tools().map_err(|error| error.to_string())?;
    let asking = RenderOptions::prompt(&tools);
    let telling = RenderOptions { add_generation_prompt: false, ..asking.clone() };
    let render = |messages: &[Message], options: &RenderOptions<'_>| {
        text.template.render(messages, options).map_err(|error| error.to_string())
    };
    let encode = |part: &str| text.tokenizer.encode(part).map_err(|error| error.to_string());

    let asked = render(&task.prompt, &asking)?;
    let whole = [&task.prompt[..], std::slice::from_ref(answer)].concat();
    let turn = render(&whole, &telling).and_then(|whole| {
        let start = match whole.starts_with(&asked) {
            true => asked,
            // Some templates ask with more than they write before an answer, such as an open `<think>`.
            false => render(&task.prompt, &telling)?,
        };
        let wrong = match whole.strip_prefix(&start) {
            Some(turn) if !start.is_empty() => left_out(answer, turn),
            _ => Some("writes the prompt in another way where an answer follows"),
        };
        match wrong {
            None => Ok((start, whole)),
            Some(what) => Err(format!(
                "the chat template {what}\nhint: use another template (chat_template.jinja in the model's folder), or rows whose answer is text alone"
            )),
        }
    });
    let only_text = answer.tool_calls.is_empty() && answer.reasoning.as_deref().is_none_or(str::is_empty);
    let (prompt, mut response) = match turn {
        Ok((start, whole)) => {
            let prompt = encode(&start)?;
            // Some tokenizers begin a text in another way than they go on: the turn is encoded alone only where a
            // token would lie across its beginning.
            let response = match encode(&whole)?.strip_prefix(prompt.as_slice()) {
                Some(response) => response.to_vec(),
                None => encode(&whole[start.len()..])?,
            };
            (prompt, response)
        }
        // A text is what the model is to write, whatever the template makes of it in a conversation that goes on.
        Err(_) if only_text => (prompt_ids(task, text)?, encode(&answer.text())?),
        Err(what) => return Err(what),
    };
    end_turn(&mut response, &text.tokenizer);
    Ok(SftRow { prompt, response })
}

/// What the chat template does wrong if not all of an answer is in its turn.
fn left_out(answer: &Message, turn: &str) -> Option<&'static str> {
    // White space is the template's to choose.
    let packed = |text: &str| text.split_whitespace().collect::<String>();
    let turn = packed(turn);
    let has = |text: &str| turn.contains(&packed(text));
    if answer.tool_calls.iter().any(|call| !has(&call.name)) {
        Some("leaves out the answer's tool calls")
    } else if answer.reasoning.as_deref().is_some_and(|reasoning| !has(reasoning)) {
        Some("leaves out the answer's reasoning")
    } else if !has(&answer.text()) {
        Some("leaves out the answer's text")
    } else {
        None
    }
}

/// Ends a response where the model stops: at the first token that ends a text
/// after all of the answer, or else at one more.
fn end_turn(response: &mut Vec<u32>, tokenizer: &Tokenizer) {
    let ends = |id: &u32| tokenizer.stop_ids().contains(id);
    // What templates write after an answer besides: a line's end after the turn's, the text's end after that.
    let closes = |id: &u32| ends(id) || tokenizer.token_to_text(*id).text.trim().is_empty();
    let closing = response.iter().rposition(|id| !closes(id)).map_or(0, |last| last + 1);
    let end = response[closing..].iter().position(ends);
    match end {
        Some(end) => response.truncate(closing + end + 1),
        None => response.push(tokenizer.eos()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::prompts::prompts;
    use gavel_data::RowReader;
    use serde_json::{Value, json};

    const TEMPLATE: &str =
        "{% for tool in tools or [] %}<{{ tool.function.name }}>{% endfor %}{{ messages[0].content }}:";

    /// Of ChatML, with all that an answer may have.
    const CALLS: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{{ message.reasoning_content or '' }}{{ message.content or '' }}{% for call in message.tool_calls or [] %}<call>{{ call.function.name }} {{ call.function.arguments | tojson }}{% endfor %}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}";

    /// Whose turns end with another token than texts.
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

    fn read(config: &Config<toml::Table>) -> Vec<Row> {
        RowReader::open(config.data.train.path()).unwrap().collect::<std::result::Result<_, _>>().unwrap()
    }

    /// What the template makes of each row, for `gavel train` and `gavel sft`.
    fn rendered(rows: &[Value]) -> Result<[Vec<String>; 2]> {
        let folder = tempfile::tempdir().unwrap();
        let text = model(folder.path(), TEMPLATE, &[2]);
        let config = config(folder.path(), "error", rows);
        let limit = PromptLimit::new(&config.data, 512, 8).unwrap();
        let prompts = prompts(read(&config), &config.data.train, "train", &text, limit)?;
        let rows = sft_rows(read(&config), &config.data.train, &text, limit)?;
        let decode = |ids: &[u32]| text.tokenizer.decode(ids).unwrap();
        Ok([
            prompts.iter().map(|prompt| decode(&prompt.ids)).collect(),
            rows.iter().map(|row| decode(&row.prompt)).collect(),
        ])
    }

    /// Prompt and response of each row for `gavel sft`, special tokens included.
    fn imitated(
        template: &str,
        ends: &[u32],
        positions: i64,
        overlong: &str,
        rows: &[Value],
    ) -> Result<Vec<[String; 2]>> {
        let folder = tempfile::tempdir().unwrap();
        let text = model(folder.path(), template, ends);
        let config = config(folder.path(), overlong, rows);
        let limit = PromptLimit::new(&config.data, positions, 8).unwrap();
        let rows = sft_rows(read(&config), &config.data.train, &text, limit)?;
        let decode = |ids: &[u32]| text.tokenizer.decode_with(ids, false).unwrap();
        Ok(rows.iter().map(|row| [decode(&row.prompt), decode(&row.response)]).collect())
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
        assert_eq!(
            found,
            [[prompt, "Hm.<call>add {\"a\": 2}<|im_end|>"], [prompt, "4<|im_end|>"], [prompt, "<|im_end|>"]]
        );
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
        let row = json!({"prompt": "2+2", "response": "4"});
        let found = imitated(&template, &[2, 0], 512, "error", &[row]).unwrap();
        assert_eq!(found, [["user:2+2<|pad|>\n", "assistant:4<|pad|>"]]);
    }

    #[test]
    fn nothing_of_an_answer_is_left_out() {
        let error =
            |template: &str, row: Value| imitated(template, &[2], 512, "error", &[row]).unwrap_err().to_string();
        let said = error(TURNS, call());
        assert!(said.contains("rows.jsonl, line 1: the chat template leaves out the answer's tool calls"), "{said}");
        let thought = answered(json!({"role": "assistant", "content": "4", "reasoning_content": "Hm."}));
        let said = error(TURNS, thought);
        assert!(said.contains("line 1: the chat template leaves out the answer's reasoning"), "{said}");
        // This one has nothing but the last message.
        let last = "{{ messages[-1].content }}:";
        let said = error(last, call());
        assert!(said.contains("line 1: the chat template writes the prompt in another way"), "{said}");
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
}
