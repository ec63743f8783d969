//! Notes all that a reward of the contract 0.1 can see: the verdict of another
//! reward, the sample, the reference, and the answers of a model, a reward model
//! and a program.

use gavel_sdk::chat::Request;
use gavel_sdk::{
    ContentPart, Credit, Failure, Info, Message, NoParams, PriorVerdict, Reference, Reward, Sample, Score, Verdict,
    exec, reward_model,
};
use serde_json::{Value, json};

struct Sees;

impl Reward for Sees {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new("sees", "1.0.0").score_range(0.0, 1.0)
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let verdicts: Vec<Value> = ["a", "b", "c", "d", "e"].iter().map(|name| prior(sample.verdict(name))).collect();
        let trajectories: Vec<Value> = sample
            .trajectories()
            .map(|trajectory| {
                json!({
                    "messages": trajectory.messages().map(|it| message(&it)).collect::<Vec<_>>(),
                    "response": trajectory.response(),
                    "finish_reason": format!("{:?}", trajectory.finish_reason()),
                    "turns": [trajectory.turns(), trajectory.tool_turns()],
                    "tokens": [trajectory.prompt_tokens(), trajectory.response_tokens()],
                    "policy_version": trajectory.policy_version(),
                })
            })
            .collect();
        let asked = match Request::new("echo").user("hello").send() {
            Ok(reply) => json!({"text": reply.text(), "finish_reason": reply.finish_reason()}),
            Err(error) => json!(format!("{error:?}")),
        };
        let scored = reward_model::Request::new("rm", vec![Message::user("q")]).assistant("a").send();
        let ran = exec::run(vec![exec::Job::new("child").args(["exit", "3"])]).remove(0);
        let note = json!({
            "task": [json!(sample.task_id()), json!(sample.data_source()), json!(sample.group_index())],
            "prompt": sample.prompt().iter().map(message).collect::<Vec<_>>(),
            "trajectories": trajectories,
            "response": sample.response(),
            "verdicts": verdicts,
            "ground_truth": reference.ground_truth(),
            "column": reference.column("level"),
            "columns": [json!(reference.column_names()), json!(reference.columns())],
            "chat": asked,
            "reward_model": format!("{scored:?}"),
            "exec": format!("{:?}", ran.map(|output| output.ending)),
        });
        let mut score = Score::new(0.25).metric("m", -1.5).note(note.to_string());
        score.credit.push(Credit { trajectory: 0, message: 0, start: 0, end: 1, value: 0.5 });
        Ok(score.into())
    }
}

gavel_sdk::export_reward!(Sees);

fn prior(verdict: Option<PriorVerdict>) -> Value {
    match verdict {
        Some(PriorVerdict::Scored(score)) => {
            let metrics: Vec<Value> = score.metrics.iter().map(|it| json!([it.name, it.value])).collect();
            let credit: Vec<Value> = score.credit.iter().map(|it| json!([it.message, it.start, it.end, it.value])).collect();
            json!({"value": score.value, "metrics": metrics, "credit": credit, "note": score.note})
        }
        Some(PriorVerdict::Abstained(reason)) => json!({"abstained": reason}),
        Some(other) => json!(format!("{other:?}")),
        None => Value::Null,
    }
}

fn message(message: &Message) -> Value {
    let parts: Vec<Value> = message
        .content
        .iter()
        .map(|part| match part {
            ContentPart::Text(text) => json!(text),
            ContentPart::Media(media) => json!([media.media_type(), media.size(), media.read(1, 2)]),
        })
        .collect();
    let calls: Vec<Value> = message.tool_calls.iter().map(|it| json!([it.id, it.name, it.arguments])).collect();
    json!([format!("{:?}", message.role), parts, calls, message.tool_call_id, message.name])
}
