//! What is learned of an answer, against what `transformers` renders.

use super::*;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Opens a thought in the prompt, and writes a thought before an answer only if the answer has one, as Nemotron's.
const THINKS: &str = "{% for message in messages %}<|im_start|>{{ message.role }}\n{% if message.role == 'assistant' and '</think>' not in message.content %}<think></think>{% endif %}{{ message.content }}<|im_end|>\n{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n<think>{{ '</think>' if quiet else '\n' }}{% endif %}";

/// Opens a thought in the prompt, and leaves thoughts out of the conversation, as DeepSeek's.
const FORGETS: &str = "{% for message in messages %}{{ message.role }}:{{ message.content.split('</think>')[-1] }}<|im_end|>{% endfor %}{% if add_generation_prompt %}assistant:<think>\n{% endif %}";

fn model(template: &str) -> TextModel {
    let folder = tempfile::tempdir().unwrap();
    TextModel::byte_level().save(folder.path()).unwrap();
    std::fs::write(folder.path().join("chat_template.jinja"), template).unwrap();
    let mut text = TextModel::load(folder.path()).unwrap();
    let tokens = json!({"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>", "unk_token": "<unk>"});
    text.template.set_variables(tokens.as_object().unwrap().clone());
    text
}

/// The texts of the prompt and of what is learned, and the end of the prompt that is not read.
fn learned(
    text: &TextModel,
    prompt: &[Message],
    options: &PromptOptions,
    answer: &Message,
) -> Result<([String; 2], Option<String>), String> {
    let turn = LearnedTurn::new(prompt, options, answer, text, usize::MAX);
    let LearnedTurn { row, unread } = turn.map_err(|why| match why {
        NoTokens::TooLong(what) | NoTokens::Wrong(what) => what,
    })?;
    Ok(([row.prompt, row.response].map(|ids| text.tokenizer.decode_with(&ids, false).unwrap()), unread))
}

/// The same after the user's `2+2`.
fn after(template: &str, kwargs: Value, answer: &str) -> ([String; 2], Option<String>) {
    let template_kwargs = Arc::new(kwargs.as_object().unwrap().clone());
    let options = PromptOptions { template_kwargs, ..PromptOptions::default() };
    let (user, answer) = (Message::new(Role::User, "2+2"), Message::new(Role::Assistant, answer));
    learned(&model(template), &[user], &options, &answer).unwrap()
}

#[test]
fn a_thought_that_the_prompt_opens_is_not_opened_again() {
    let prompt = "<|im_start|>user\n2+2<|im_end|>\n<|im_start|>assistant\n";
    let thinking = format!("{prompt}<think>\n");
    for answer in ["<think>\ntwo\n</think>\n\n4", "two\n</think>\n\n4"] {
        let ([read, written], unread) = after(THINKS, json!({}), answer);
        assert_eq!((read, written.as_str(), unread), (thinking.clone(), "two\n</think>\n\n4<|im_end|>", None));
        let ([read, written], unread) = after(FORGETS, json!({}), answer);
        let expected = ("user:2+2<|im_end|>assistant:<think>\n", "two\n</think>\n\n4<|im_end|>", None);
        assert_eq!((read.as_str(), written.as_str(), unread), expected);
    }
    // The template writes another thought than the prompt opens.
    let ([read, written], unread) = after(THINKS, json!({}), "4");
    assert_eq!((read, written.as_str()), (format!("{prompt}<think>"), "</think>4<|im_end|>"));
    assert_eq!(unread.as_deref(), Some("\n"));
    let ([read, written], unread) = after(FORGETS, json!({}), "4");
    assert_eq!((read.as_str(), written.as_str()), ("user:2+2<|im_end|>assistant:", "4<|im_end|>"));
    assert_eq!(unread.as_deref(), Some("<think>\n"));
    // A prompt that closes the thought has none to continue.
    let ([read, written], unread) = after(THINKS, json!({"quiet": true}), "4");
    assert_eq!((read, written.as_str(), unread), (format!("{prompt}<think></think>"), "4<|im_end|>", None));
    let ([read, written], unread) = after(THINKS, json!({"quiet": true}), "<think>two</think>4");
    assert_eq!((read, written.as_str()), (format!("{prompt}<think>"), "two</think>4<|im_end|>"));
    assert_eq!(unread.as_deref(), Some("</think>"));
}

#[test]
fn an_open_tag_is_one_that_ends_the_text() {
    let open = ["x\n<think>\n", "[THINK]", "<seed:think>", "<think></think>", "<|im_start|>", "[/INST]", "a", "", "<>"];
    let tags = [Some("<think>"), Some("[THINK]"), Some("<seed:think>"), None, None, None, None, None, None];
    assert_eq!(open.map(open_tag), tags);
}

#[derive(Deserialize)]
struct Fixture {
    rows: BTreeMap<String, Row>,
    rendered: BTreeMap<String, BTreeMap<String, Rendered>>,
}

#[derive(Deserialize)]
struct Row {
    prompt: Vec<Message>,
    completion: Vec<Message>,
    tools: Option<Vec<Value>>,
    chat_template_kwargs: Map<String, Value>,
}

/// What `transformers` renders: a text, or an error.
#[derive(Deserialize)]
struct Rendered {
    asked: BTreeMap<String, String>,
    whole: BTreeMap<String, String>,
}

/// The text up to the token at which the byte-level model stops, which is added where the template has none.
fn ended(text: &str) -> String {
    match text.trim_end().ends_with("<|im_end|>") {
        true => text.trim_end().to_owned(),
        false => format!("{text}<|im_end|>"),
    }
}

/// Where the conversation of `transformers` begins with its prompt, the rest of it is learned. Elsewhere, either an
/// answer of text alone follows the whole prompt, or the rest of the conversation is learned from where the two part.
#[test]
fn what_transformers_writes_after_its_prompt_is_learned() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/chat_templates");
    let fixture = std::fs::read_to_string(folder.join("learned.json")).unwrap();
    let Fixture { rows, rendered } = serde_json::from_str(&fixture).unwrap();
    let (mut counts, mut differ) = (BTreeMap::new(), Vec::new());
    for (family, rendered) in rendered {
        let text = model(&std::fs::read_to_string(folder.join(format!("{family}.jinja"))).unwrap());
        for (name, Rendered { asked, whole }) in rendered {
            let row = &rows[&name];
            let options = PromptOptions {
                functions: row.tools.clone().unwrap_or_default().into(),
                template_kwargs: Arc::new(row.chat_template_kwargs.clone()),
            };
            let [answer] = &row.completion[..] else { panic!("{name}") };
            let found = learned(&text, &row.prompt, &options, answer);
            let (asked, whole) = (asked.get("text"), whole.get("text"));
            let rest = asked.zip(whole).and_then(|(asked, whole)| whole.strip_prefix(asked.as_str()));
            let (kind, is_right) = match (asked, rest, found) {
                (None, _, found) => ("no prompt", found.is_err()),
                // A part of the answer, which is more than text, would be lost.
                (_, _, Err(_)) => {
                    let lost = |reasoning: &String| whole.is_some_and(|whole| !whole.contains(reasoning));
                    ("refused", answer.reasoning.as_ref().is_some_and(lost))
                }
                (Some(asked), Some(rest), Ok(([read, written], None))) => {
                    ("continued", read == *asked && written == ended(rest))
                }
                (Some(asked), None, Ok(([read, written], None))) => {
                    let said = answer.text();
                    let opens = asked.ends_with("<think>\n");
                    let opened = ["<think>\n", "<think>"].into_iter().find_map(|tag| said.strip_prefix(tag));
                    let said = opened.filter(|_| opens).unwrap_or(&said);
                    ("text alone", read == *asked && written == ended(said))
                }
                (Some(asked), _, Ok(([read, written], Some(unread)))) => {
                    let (next, whole) = (|text: &str| text[read.len()..].chars().next(), whole.unwrap());
                    let is_whole = format!("{read}{written}") == ended(whole) && format!("{read}{unread}") == *asked;
                    ("parted", is_whole && next(whole) != next(asked))
                }
            };
            *counts.entry(kind).or_insert(0) += 1;
            if !is_right {
                differ.push(format!("{family}, {name}: {kind}"));
            }
        }
    }
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
    let expected = [("continued", 286), ("no prompt", 12), ("parted", 48), ("refused", 147), ("text alone", 51)];
    assert_eq!(counts, BTreeMap::from(expected));
}
