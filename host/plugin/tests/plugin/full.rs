//! A sample with a value in every field that a plugin can read, and the verdicts of other rewards on it.

use gavel_data::{
    CallTrace, Credit, FinishReason, Message, Metric, Opening, PriorVerdict, Role, Sample, SamplingMasks, Score, Task,
    Tokens, ToolCall, ToolEnding, Trace, Trajectory, TurnTrace,
};
use serde_json::json;
use std::sync::Arc;

/// A sample with a value in every field that a plugin can read.
pub fn full_sample() -> Sample {
    let image = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AQIDBA=="}});
    let row = json!({
        "id": "t",
        "data_source": "s",
        "prompt": [{"role": "user", "content": [{"type": "text", "text": "look"}, image]}],
        "answer": "4",
        "level": [1, null],
    });
    let task = Task::from_row(serde_json::from_value(row).unwrap(), 0, "train").unwrap();
    let call = ToolCall { id: "c".into(), name: "f".into(), arguments: "{}".into() };
    let asks = Message { tool_calls: vec![call], ..Message::new(Role::Assistant, "?é") };
    let told = Message { tool_call_id: Some("c".into()), name: Some("f".into()), ..Message::new(Role::Tool, "no") };
    let tokens = Tokens {
        prompt: vec![1, 2, 3],
        response: vec![4, 5, 6, 7],
        loss_mask: vec![true, false, true, true],
        logprobs: vec![0.0; 4],
        versions: vec![9; 4],
        masks: SamplingMasks::new(),
    };
    let function = json!({"name": "f", "description": "Does it.", "parameters": {"type": "object"}});
    let trace = Trace {
        tools: Arc::from([json!({"type": "function", "function": function})]),
        turns: vec![
            TurnTrace { message: 0, tokens: 1, finish_reason: FinishReason::Stop },
            TurnTrace { message: 2, tokens: 2, finish_reason: FinishReason::Length },
        ],
        calls: vec![
            CallTrace { turn: 0, function: Some("f".into()), ending: ToolEnding::Failed },
            CallTrace { turn: 0, function: None, ending: ToolEnding::CalledWrongly },
        ],
    };
    let trajectory = Trajectory {
        tokens: Some(tokens.into()),
        finish_reason: FinishReason::Length,
        trace,
        ..Trajectory::of(vec![asks, told, Message::new(Role::Assistant, "4")])
    };
    let opening = Opening { speaker: "critic".into(), messages: vec![Message::new(Role::User, "Is it 4?")] };
    let second = Trajectory { opening: Some(opening), ..Trajectory::of(vec![Message::new(Role::Assistant, "yes")]) };
    Sample {
        answer: Some("four".into()),
        extra: Some(serde_json::from_str(r#"{"plan": 1.50}"#).unwrap()),
        states: [("shop".to_owned(), json!({"sold": [2]}).into())].into(),
        ..Sample::new(task.into(), 3, vec![trajectory, second])
    }
}

/// The verdicts of other rewards, one of each kind.
pub fn verdicts() -> [(&'static str, PriorVerdict); 4] {
    let score = Score {
        value: 0.5,
        metrics: vec![Metric { name: "m".into(), value: 2.0 }],
        credit: vec![Credit { trajectory: 0, message: 2, start: 0, end: 1, value: -1.0 }],
        note: Some("n".into()),
        payload: Some(serde_json::from_str(r#"{"parts": [1.50]}"#).unwrap()),
    };
    [
        ("a", PriorVerdict::Scored(score)),
        ("b", PriorVerdict::Abstained("not mine".into())),
        ("c", PriorVerdict::NotCalled),
        ("d", PriorVerdict::NoVerdict),
    ]
}
