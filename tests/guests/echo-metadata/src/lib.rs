//! Gives, as JSON in the note, everything that it saw of the sample and of the
//! reference. The score is the number of columns.

use gavel_sdk::{Failure, Info, Message, NoParams, Reference, Reward, Sample, Score, Trajectory, Verdict};
use serde_json::{Value, json};

struct EchoMetadata;

impl Reward for EchoMetadata {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let names = reference.column_names();
        // Column by column, so that the note shows what each accessor gives.
        let columns = names.iter().map(|name| Ok((name.clone(), reference.get(name)?.unwrap_or(Value::Null))));
        let seen = json!({
            "task_id": sample.task_id(),
            "data_source": sample.data_source(),
            "group_index": sample.group_index(),
            "prompt": sample.prompt().iter().map(message).collect::<Vec<_>>(),
            "response": sample.response(),
            "trajectories": sample.trajectories().map(|trajectory| self::trajectory(&trajectory)).collect::<Vec<_>>(),
            "ground_truth": reference.ground_truth(),
            "columns": columns.collect::<Result<serde_json::Map<_, _>, Failure>>()?,
            "columns_json": reference.columns(),
            "missing_column": reference.column("no such column"),
        });
        let score = Score::new(names.len() as f64)
            .metric("response_bytes", sample.response().len() as f64)
            .metric("has_ground_truth", f64::from(reference.ground_truth().is_some()))
            .metric("has_data_source", f64::from(sample.data_source().is_some()));
        Ok(score.note(seen.to_string()).into())
    }
}

gavel_sdk::export_reward!(EchoMetadata);

fn message(message: &Message) -> Value {
    json!({"role": format!("{:?}", message.role), "text": message.text()})
}

fn trajectory(trajectory: &Trajectory) -> Value {
    json!({
        "messages": trajectory.messages().map(|each| message(&each)).collect::<Vec<_>>(),
        "response": trajectory.response(),
        "finish_reason": format!("{:?}", trajectory.finish_reason()),
        "turns": trajectory.turns(),
        "tool_turns": trajectory.tool_turns(),
        "prompt_tokens": trajectory.prompt_tokens(),
        "response_tokens": trajectory.response_tokens(),
        "policy_version": trajectory.policy_version(),
    })
}
