//! Credit over random episodes: several trajectories whose turns have calls, thoughts and the same texts again and again.

use super::*;
use gavel_agent::{Conversation, PromptOptions, Turn};
use gavel_data::seed::{Purpose, derive};
use gavel_data::{FinishReason, Role};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;

/// The kinds of tokenizers that have pieces, and a token for every text.
const TOKENIZERS: [&str; 4] = ["byte_level", "byte_level_ignore_merges", "byte_level_prefix_space", "byte_fallback"];
/// Writes a call with a text.
type WriteCall = fn(&str) -> String;
/// Templates of each form of calls, and how a call is written in it.
const TEMPLATES: [(&str, WriteCall); 3] = [("qwen2_5", hermes), ("qwen3_5_think", xml), ("mistral_v3", mistral)];
/// The texts of a turn: they occur in calls and thoughts too, and some are parts of others.
const TEXTS: [&str; 7] = ["Answer: 5", "Answer: 5 5", "5", "数学 é", "a🦀b 🦀", "So", "{\"text\": \"5\"}"];

fn hermes(text: &str) -> String {
    format!("<tool_call>\n{}\n</tool_call>", json!({"name": "note", "arguments": {"text": text}}))
}

fn xml(text: &str) -> String {
    format!("<tool_call>\n<function=note>\n<parameter=text>\n{text}\n</parameter>\n</function>\n</tool_call>")
}

fn mistral(text: &str) -> String {
    format!("[TOOL_CALLS]{}", json!([{"name": "note", "arguments": {"text": text}}]))
}

fn text_model(tokenizer: &str, template: &str) -> TextModel {
    let (folder, parity) =
        (tempfile::tempdir().unwrap(), Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity"));
    let cases = parity.join("tokenizer_cases").join(tokenizer);
    std::fs::copy(cases.join("tokenizer.json"), folder.path().join("tokenizer.json")).unwrap();
    std::fs::write(folder.path().join("tokenizer_config.json"), r#"{"eos_token": "</s>"}"#).unwrap();
    let template = parity.join("chat_templates").join(template).with_extension("jinja");
    std::fs::copy(template, folder.path().join("chat_template.jinja")).unwrap();
    TextModel::load(folder.path()).unwrap()
}

/// Random numbers, the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, most: usize) -> usize {
        self.0 = derive(self.0, 0, 0, Purpose::Rollout);
        (self.0 % most as u64) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// A text that a turn says outside of its calls.
struct Said {
    trajectory: usize,
    message: u32,
    /// Its first token among the tokens of the response.
    tokens: usize,
    /// Its first byte in the turn, and in the message's text.
    written: usize,
    read: usize,
    text: &'static str,
    /// The bytes of each token of its turn.
    bytes: Arc<[Range<usize>]>,
}

/// The bytes of a turn that each token is. Unlike the code that is tested, this adds up the bytes of single tokens.
fn bytes_of(ids: &[u32], turn: &str, text: &TextModel) -> Arc<[Range<usize>]> {
    let all: Vec<usize> = ids.iter().map(|id| text.tokenizer.token_to_text(*id).bytes.len()).collect();
    // SentencePiece drops the space before the text.
    let dropped = all[..ids.len() - 1].iter().sum::<usize>() - turn.len();
    let end = |count: usize| all[..count].iter().sum::<usize>().saturating_sub(dropped);
    (0..ids.len()).map(|number| end(number)..end(number + 1)).collect()
}

/// The places of texts in a turn or its message, after a thought. `None` stands for a call, which a message does not have.
fn places(whole: &str, parts: &[Option<&str>]) -> Vec<usize> {
    let after = |at: usize, mark: &str| whole[at..].find(mark).map_or(at, |found| at + found + mark.len());
    let mut at = after(0, "</think>");
    let mut places = Vec::new();
    for part in parts {
        let Some(text) = part else {
            at = after(at, "</tool_call>");
            continue;
        };
        // Tokenizers add white space after marks.
        at += whole[at..].len() - whole[at..].trim_start().len();
        assert!(whole[at..].starts_with(text), "{whole:?} has no {text:?} at {at}");
        places.push(at);
        at += text.len();
    }
    places
}

/// Plays a random turn, and gives what it says.
fn play(
    conversation: &mut Conversation,
    place: (usize, u32, usize),
    call: WriteCall,
    text: &TextModel,
    dice: &mut Dice,
) -> Vec<Said> {
    let (mut turn, mut parts) = (String::new(), Vec::new());
    if dice.below(3) == 0 {
        turn.push_str(&format!("<think>{}</think>", dice.of(&TEXTS)));
    }
    let is_list = call("").starts_with("[TOOL_CALLS]");
    for _ in 0..=dice.below(4) {
        match dice.below(3) {
            // After a list of calls, no text follows.
            0 if is_list => {}
            0 => {
                parts.push(None);
                turn.push_str(&call(dice.of(&TEXTS)));
            }
            _ => {
                let said = dice.of(&TEXTS);
                parts.push(Some(said));
                turn.push_str(dice.of(&["", " ", "\n", "  \n\n"]));
                turn.push_str(said);
                turn.push_str(dice.of(&["", " ", "\n"]));
            }
        }
    }
    if is_list && dice.below(2) == 0 {
        turn.push_str(&call(dice.of(&TEXTS)));
    }
    let mut ids = text.tokenizer.encode(&turn).unwrap();
    let turn = text.tokenizer.decode_with(&ids, false).unwrap();
    ids.push(text.tokenizer.eos());
    let bytes = bytes_of(&ids, &turn, text);
    let (logprobs, versions) = (vec![0.0; ids.len()], vec![0; ids.len()]);
    let masks = Default::default();
    let turn_of_ids = Turn { ids, logprobs, versions, masks, finish_reason: FinishReason::Stop };
    let reply = conversation.append_turn(turn_of_ids, text);
    let message = reply.unwrap().into_message();
    let said: Vec<Option<&'static str>> = parts.iter().copied().filter(Option::is_some).collect();
    // A turn whose calls cannot be read is its message.
    let read = if message.tool_calls.is_empty() { &parts } else { &said };
    let read = places(&message.text(), read);
    let (trajectory, message, tokens) = place;
    let written = places(&turn, &parts).into_iter().zip(read).zip(said.iter().flatten());
    let said = written.map(|((written, read), text)| Said {
        trajectory,
        message,
        tokens,
        written,
        read,
        text,
        bytes: bytes.clone(),
    });
    said.collect()
}

/// Prompts that offer the function.
fn options() -> PromptOptions {
    let functions = Arc::from([json!({"type": "function", "function": {"name": "note"}})]);
    PromptOptions { functions, ..PromptOptions::default() }
}

/// A random sample, and what it says.
fn random_sample(text: &TextModel, call: WriteCall, dice: &mut Dice) -> (Vec<Trajectory>, Vec<Said>) {
    let (mut trajectories, mut said) = (Vec::new(), Vec::new());
    for number in 0..=dice.below(3) {
        let mut conversation = Conversation::new(Vec::new(), vec![1], options());
        for _ in 0..=dice.below(3) {
            let messages = conversation.history().count() as u32;
            let place = (number, messages, conversation.tokens() - 1);
            said.extend(play(&mut conversation, place, call, text, dice));
            // An agent puts words into the policy's mouth, too.
            let new: Vec<Message> = [Role::Tool, Role::Assistant, Role::User][..=dice.below(3)]
                .iter()
                .map(|role| Message::new(*role, dice.of(&TEXTS)))
                .collect();
            let ids = text.tokenizer.encode(&new.iter().map(Message::text).collect::<Vec<_>>().join("\n")).unwrap();
            conversation.append(new, ids);
        }
        trajectories.push(conversation.end(None, FinishReason::Stop, Default::default()));
    }
    (trajectories, said)
}

#[test]
fn credit_has_the_tokens_of_its_text_and_no_others() {
    let (mut placed, mut with_calls, mut repeated) = (0, 0, 0);
    for (number, tokenizer) in TOKENIZERS.into_iter().enumerate() {
        for (template, call) in TEMPLATES {
            let text = text_model(tokenizer, template);
            let mut dice = Dice(number as u64);
            for _ in 0..60 {
                let (trajectories, said) = random_sample(&text, call, &mut dice);
                for each in &said {
                    let trajectory = &trajectories[each.trajectory];
                    let (tokens, message) = (trajectory.tokens().unwrap(), &trajectory.messages[each.message as usize]);
                    let borders: Vec<usize> =
                        each.text.char_indices().map(|(at, _)| at).chain([each.text.len()]).collect();
                    let start = dice.below(borders.len() - 1);
                    let end = start + 1 + dice.below(borders.len() - 1 - start);
                    let (start, end) = (borders[start], borders[end]);
                    let place_of = |at: usize| (each.read + at) as u32;
                    let credit = Credit {
                        trajectory: each.trajectory as u32,
                        message: each.message,
                        start: place_of(start),
                        end: place_of(end),
                        value: 1.0,
                    };
                    let at = format!("{tokenizer}, {template}: {:?} of {:?}", &each.text[start..end], message.text());
                    let found =
                        place(&[credit], trajectory, tokens, &text).unwrap_or_else(|why| panic!("{at}: {why:?}"));
                    let credited: Vec<usize> = (0..found.len()).filter(|token| found[*token] != 0.0).collect();
                    let written = each.written + start..each.written + end;
                    let overlaps = |bytes: &Range<usize>| bytes.start < written.end && bytes.end > written.start;
                    let of_turn = (0..).zip(&*each.bytes).filter(|(_, bytes)| overlaps(bytes));
                    let expected: Vec<usize> = of_turn.map(|(token, _): (usize, _)| each.tokens + token).collect();
                    assert_eq!(credited, expected, "{at}");
                    let ids: Vec<u32> = credited.iter().map(|token| tokens.response[*token]).collect();
                    let decoded = text.tokenizer.decode(&ids).unwrap();
                    // SentencePiece drops the space before a text.
                    assert!(decoded.contains(each.text[start..end].trim_start()), "{at}: the tokens are {decoded:?}");
                    placed += 1;
                    with_calls += usize::from(!message.tool_calls.is_empty());
                    repeated += usize::from(message.text().matches(each.text).count() > 1);
                }
            }
        }
    }
    assert!(placed > 3000 && with_calls > 300 && repeated > 300, "{placed}, {with_calls}, {repeated}");
}

/// The text of a call is not the text after it.
#[test]
fn credit_is_for_the_text_after_a_call_with_the_same_text() {
    let text = text_model("byte_level", "qwen2_5");
    let turn = hermes("Answer: 5") + "Answer: 5";
    let ids = text.tokenizer.encode(&turn).unwrap();
    let mut conversation = Conversation::new(Vec::new(), vec![1], options());
    let (logprobs, versions) = (vec![0.0; ids.len()], vec![0; ids.len()]);
    let masks = Default::default();
    let turn = Turn { ids: ids.clone(), logprobs, versions, masks, finish_reason: FinishReason::Stop };
    assert_eq!(conversation.append_turn(turn, &text).unwrap().content, "Answer: 5");
    let trajectory = conversation.end(None, FinishReason::Stop, Default::default());
    let credit = Credit { trajectory: 0, message: 0, start: 0, end: 9, value: 1.0 };
    let found = place(&[credit], &trajectory, trajectory.tokens().unwrap(), &text).unwrap();
    let first = found.iter().position(|credit| *credit != 0.0).unwrap();
    assert_eq!(text.tokenizer.decode_with(&ids[..first], false).unwrap(), hermes("Answer: 5"));
    assert!(found[first..].iter().all(|credit| *credit == 1.0));
}
