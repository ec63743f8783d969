//! Plugins read whole texts, however long they are.

use crate::common::{Sampled, guest, sandbox};
use futures::FutureExt;
use futures::future::BoxFuture;
use gavel_data::{ContentPart, Media, Message, Role, Sample, Task, Trajectory};
use gavel_plugin::{CallMeter, ChatBody, ChatError, ChatModel, ChatRequest, Grants, Limits, Plugin, PluginSpec};
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// A model that answers with the text of the request.
struct Echo;

impl ChatModel for Echo {
    fn complete(
        self: Arc<Self>,
        request: ChatRequest,
        meter: CallMeter,
    ) -> BoxFuture<'static, Result<ChatBody, ChatError>> {
        let body = json!({"choices": [{"message": {"role": "assistant", "content": request.messages[0].text()}}]});
        async move { Ok(ChatBody::of(&body, &meter)?) }.boxed()
    }
}

/// A text of `size` bytes without repeated parts.
fn text(size: usize) -> String {
    let mut text: String = (0..size / 8 + 1).map(|line| format!("{line:06}é")).collect();
    text.truncate(text.floor_char_boundary(size));
    let rest = size - text.len();
    text + &"\0".repeat(rest)
}

/// A sample with a text of `size` bytes wherever a text is possible.
fn long(size: usize) -> Arc<Sample> {
    let text = text(size);
    let columns = serde_json::from_value(json!({"ground_truth": text, "long": text})).unwrap();
    let mut question = Message::new(Role::User, text.clone());
    let image = Media { media_type: "image/png".into(), bytes: text.clone().into_bytes().into() };
    question.content.push(ContentPart::Media(image));
    let messages = vec![Message::new(Role::Assistant, text)];
    let trajectories = vec![Trajectory::of(messages)];
    let task = Task::with_prompt(columns, vec![question], 0, "t");
    Arc::new(Sample::new(Arc::new(task), 0, trajectories))
}

/// The length and the FNV-1a hash.
fn measure(bytes: &[u8]) -> Value {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
    json!([bytes.len(), bytes.iter().fold(0xcbf2_9ce4_8422_2325_u64, step)])
}

#[test]
fn a_sample_its_row_and_a_reply_are_read_whole() {
    let sandbox = sandbox();
    sandbox.add_chat("echo", Arc::new(Echo), NonZeroUsize::MIN);
    let grants = Grants { chat: vec!["echo".into()], ..Grants::default() };
    // A busy machine takes seconds for the longest texts.
    let (cpu, deadline) = (Duration::from_secs(60), Duration::from_secs(300));
    let limits = Limits { output: 8 << 20, cpu, deadline, ..Limits::default() };
    let spec = PluginSpec { grants, limits, ..PluginSpec::new("reads", guest("reads")) };
    let plugin = sandbox.handle().block_on(Plugin::load(&sandbox, spec)).unwrap();
    for size in (0..=22).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]) {
        let seen = sandbox.handle().block_on(plugin.score(&long(size), 1)).note();
        let seen = seen.as_object().unwrap();
        assert_eq!(seen.len(), 11);
        let expected = measure(text(size).as_bytes());
        assert!(seen.values().all(|seen| *seen == expected), "{size}: {seen:?}");
    }
}
