//! The request to the server: samples and the answer key, as JSON.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use gavel_sdk::{ContentPart, FinishReason, Message, Reference, Role, Sample, Trajectory};
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The revision of the protocol.
const PROTOCOL: &str = "gavel-reward/1";
/// Bytes of an attachment that are read at once.
const CHUNK: u32 = 1 << 20;

/// The body of a request about attempts at one task.
pub(crate) fn body(samples: &[&Sample], reference: &Reference) -> Vec<u8> {
    #[derive(serde::Serialize)]
    struct Body {
        protocol: &'static str,
        samples: Vec<Value>,
        /// The row as it is: its numbers keep their text.
        reference: Option<Box<RawValue>>,
    }
    let samples = samples.iter().map(|sample| of_sample(sample)).collect();
    let reference = RawValue::from_string(reference.columns()).ok();
    serde_json::to_vec(&Body { protocol: PROTOCOL, samples, reference }).unwrap_or_default()
}

fn of_sample(sample: &Sample) -> Value {
    let trajectories: Vec<Value> = sample.trajectories().map(|trajectory| of_trajectory(&trajectory)).collect();
    json!({
        "task_id": sample.task_id(),
        "data_source": sample.data_source(),
        "group_index": sample.group_index(),
        "prompt": sample.prompt().iter().map(of_message).collect::<Vec<_>>(),
        "response": sample.response(),
        "trajectories": trajectories,
    })
}

fn of_trajectory(trajectory: &Trajectory) -> Value {
    json!({
        "messages": trajectory.messages().map(|message| of_message(&message)).collect::<Vec<_>>(),
        "finish_reason": match trajectory.finish_reason() {
            FinishReason::Stop => "stop",
            FinishReason::Length => "length",
            FinishReason::MaxTurns => "max-turns",
            FinishReason::Timeout => "timeout",
            FinishReason::Error => "error",
        },
        "prompt_tokens": trajectory.prompt_tokens(),
        "response_tokens": trajectory.response_tokens(),
        "policy_version": trajectory.policy_version(),
    })
}

/// A message in the form of chat APIs.
fn of_message(message: &Message) -> Value {
    let role = match message.role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    };
    let is_text = |part: &ContentPart| matches!(part, ContentPart::Text(_));
    let content = match message.content.iter().all(is_text) {
        true => json!(message.text()),
        false => message.content.iter().map(of_part).collect(),
    };
    let mut written = json!({ "role": role, "content": content });
    if !message.tool_calls.is_empty() {
        let calls = message.tool_calls.iter().map(|call| {
            let function = json!({ "name": call.name, "arguments": call.arguments });
            json!({ "id": call.id, "type": "function", "function": function })
        });
        written["tool_calls"] = calls.collect();
    }
    if let Some(id) = &message.tool_call_id {
        written["tool_call_id"] = json!(id);
    }
    if let Some(name) = &message.name {
        written["name"] = json!(name);
    }
    written
}

fn of_part(part: &ContentPart) -> Value {
    match part {
        ContentPart::Text(text) => json!({ "type": "text", "text": text }),
        ContentPart::Media(media) => {
            let mut data = Vec::new();
            while (data.len() as u64) < media.size() {
                data.extend(media.read(data.len() as u64, CHUNK));
            }
            json!({ "type": "media", "media_type": media.media_type(), "data": BASE64_STANDARD.encode(data) })
        }
    }
}
