//! Random samples for [`proptest`](https://docs.rs/proptest), with cases that
//! authors do not think of.

use crate::sample::SampleBuilder;
use gavel_data::{
    ContentPart, FinishReason, Media, Message, Role, Sample, Task, TokenCounts, ToolCall, Trajectory, TrajectoryRecord,
};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use std::borrow::Cow;
use std::sync::Arc;

/// The longest text, in bytes, as from a policy that does not stop.
const LONGEST: usize = 1 << 20;

/// Parts of answers, and parts that break programs that read them.
const PIECES: &[&str] = &[
    "a",
    "The answer is ",
    "4",
    "-0.5",
    "1,000",
    "1e400",
    "NaN",
    "½",
    "٣",
    "−1",
    "𝟙",
    "9^{9^{9}}",
    " ",
    "\n",
    "\t",
    "\r\n",
    "#### ",
    "Answer:",
    "\\boxed{",
    "\\frac{1}{",
    "}",
    "$",
    "<answer>",
    "</answer>",
    "<think>",
    "```python\n",
    "```",
    "(",
    "[",
    "\"",
    "\\",
    "{\"a\":",
    "null",
    "%s",
    "${x}",
    "\0",
    "\u{1b}[31m",
    "\u{7f}",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "\u{202e}",
    "\u{200d}",
    "\u{fffd}",
    "\u{10ffff}",
    "e\u{301}",
    "ß",
    "İ",
    "ﬁ",
    "é",
    "Ω",
    "Ж",
    "שלום",
    "مرحبا",
    "नमस्ते",
    "ไทย",
    "日本語",
    "한국어",
    "👍🏽",
    "👩‍👩‍👧‍👦",
    "🇩🇪",
];

/// A text: empty, ordinary, in any script, with control characters, up to a
/// megabyte.
pub fn texts() -> BoxedStrategy<String> {
    let pieces = vec(select(PIECES), 0..24).prop_map(|pieces| pieces.concat());
    let anything = vec(any::<char>(), 0..64).prop_map(String::from_iter);
    let long = (select(PIECES), 0..=LONGEST).prop_map(|(piece, bytes)| piece.repeat(bytes / piece.len()));
    prop_oneof![1 => Just(String::new()), 8 => pieces, 4 => anything, 1 => long].boxed()
}

/// A short text, such as a name.
fn words() -> BoxedStrategy<String> {
    prop_oneof![3 => "[a-z][a-z0-9_]{0,8}".boxed(), 1 => vec(select(PIECES), 0..4).prop_map(|pieces| pieces.concat())]
        .boxed()
}

/// Any JSON.
pub fn json_values() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        // JSON has no numbers that are not finite.
        any::<f64>().prop_map(|number| json!(number)),
        words().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 6, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..6).prop_map(Value::from),
            vec((words(), inner), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
    .boxed()
}

fn roles() -> impl Strategy<Value = Role> {
    select(&[Role::System, Role::User, Role::Assistant, Role::Tool][..])
}

fn finish_reasons() -> impl Strategy<Value = FinishReason> {
    use FinishReason::{Error, Length, MaxTurns, Stop, Timeout};
    select(&[Stop, Length, MaxTurns, Timeout, Error][..])
}

fn tool_calls() -> impl Strategy<Value = ToolCall> {
    let arguments = prop_oneof![3 => json_values().prop_map(|value| value.to_string()), 1 => texts()];
    (words(), words(), arguments).prop_map(|(id, name, arguments)| ToolCall { id, name, arguments })
}

fn parts() -> impl Strategy<Value = ContentPart> {
    let media = (select(&["image/png", "audio/wav", "x"][..]), vec(any::<u8>(), 0..256))
        .prop_map(|(kind, bytes)| ContentPart::Media(Media { media_type: kind.into(), bytes: bytes.into() }));
    prop_oneof![4 => texts().prop_map(ContentPart::Text), 1 => media]
}

/// A message of any role, with text, attachments, tool calls or nothing.
pub fn messages() -> BoxedStrategy<Message> {
    let plain = (roles(), texts()).prop_map(|(role, text)| Message::new(role, text));
    let any = (roles(), vec(parts(), 0..3), vec(tool_calls(), 0..3), option::of(words()), option::of(words()))
        .prop_map(|(role, content, tool_calls, tool_call_id, name)| Message {
            role,
            content,
            tool_calls,
            tool_call_id,
            name,
            reasoning: None,
        });
    prop_oneof![3 => plain, 1 => any].boxed()
}

/// A trajectory: a single answer, a conversation, hundreds of turns, or
/// nothing at all; ended for any reason.
pub fn trajectories() -> BoxedStrategy<Trajectory> {
    let answer = texts().prop_map(|text| vec![Message::new(Role::Assistant, text)]);
    let turn = (roles(), words()).prop_map(|(role, text)| Message::new(role, text));
    let talk = prop_oneof![6 => answer, 3 => vec(messages(), 0..6), 1 => vec(turn, 0..300)];
    let counts = (0..100_000u32, 0..10_000u32, option::of(any::<u64>()));
    let tokens = counts.prop_map(|(prompt, response, policy_version)| TokenCounts { prompt, response, policy_version });
    (talk, finish_reasons(), option::of(tokens))
        .prop_map(|(messages, finish_reason, tokens)| {
            TrajectoryRecord {
                opening: None,
                messages: Cow::Owned(messages),
                by_agent: Cow::default(),
                finish_reason,
                tokens,
                trace: Cow::default(),
            }
            .into()
        })
        .boxed()
}

/// A dataset's row, which may lack any column that a plugin needs.
pub fn tasks() -> BoxedStrategy<Task> {
    let truth = prop_oneof![
        2 => Just(None),
        4 => words().prop_map(|text| Some(Value::from(text))),
        2 => json_values().prop_map(Some),
        1 => texts().prop_map(|text| Some(Value::from(text))),
    ];
    let columns = vec((words(), json_values()), 0..4);
    (vec(messages(), 0..3), truth, option::of(words()), columns)
        .prop_map(|(prompt, truth, source, others)| {
            let mut columns: Map<String, Value> = others.into_iter().collect();
            columns.extend(truth.map(|truth| ("ground_truth".to_owned(), truth)));
            columns.extend(source.map(|source| ("data_source".to_owned(), source.into())));
            Task::with_prompt(columns.into(), prompt, 0, "test")
        })
        .boxed()
}

/// A sample of any task: one trajectory, or several.
pub fn samples() -> BoxedStrategy<Sample> {
    tasks().prop_flat_map(|task| of_task(Arc::new(task))).boxed()
}

/// The samples of a group: attempts at one task, for a judger.
pub fn groups() -> BoxedStrategy<Vec<Sample>> {
    tasks().prop_flat_map(|task| vec(of_task(Arc::new(task)), 1..8)).boxed()
}

/// Samples of the task of `sample`: its prompt and its row, with any response
/// of the policy.
pub fn samples_like(sample: &SampleBuilder) -> BoxedStrategy<Sample> {
    of_task(sample.clone().build().task)
}

fn of_task(task: Arc<Task>) -> BoxedStrategy<Sample> {
    let several = prop_oneof![5 => vec(trajectories(), 1), 1 => vec(trajectories(), 2..4)];
    (several, 0..64u32).prop_map(move |(trajectories, index)| Sample::new(task.clone(), index, trajectories)).boxed()
}
