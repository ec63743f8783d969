//! Notes what a reward can see of a sample beside its messages. The parameter
//! `payload` is the payload of its score.

use gavel_sdk::{Failure, Info, Message, PriorVerdict, Reference, Reward, Sample, Score, Trajectory, Verdict};
use serde_json::{Value, json};

struct Traces {
    params: Params,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    payload: Option<Value>,
}

impl Reward for Traces {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn score(&self, sample: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        let before = match sample.verdict("before") {
            Some(PriorVerdict::Scored(score)) => score.payload,
            _ => None,
        };
        let note = json!({
            "trajectories": sample.trajectories().map(|it| trace(&it)).collect::<Result<Vec<_>, _>>()?,
            "extra": sample.read_extra::<Value>()?,
            "before": before,
        });
        let score = Score::new(1.0).note(note.to_string());
        Ok(match &self.params.payload {
            Some(payload) => score.payload(payload.clone()),
            None => score,
        }
        .into())
    }
}

gavel_sdk::export_reward!(Traces);

fn trace(trajectory: &Trajectory) -> Result<Value, Failure> {
    let turns = (0..trajectory.message_count()).map(|index| {
        let reason = trajectory.turn_finish_reason(index).map(|reason| format!("{reason:?}"));
        json!([reason, trajectory.message_tokens(index)])
    });
    let calls =
        trajectory.calls().into_iter().map(|call| json!([call.turn, call.function, format!("{:?}", call.ending)]));
    Ok(json!({
        "speaker": trajectory.speaker(),
        "opening": trajectory.opening().iter().map(Message::text).collect::<Vec<_>>(),
        "functions": trajectory
            .functions()
            .iter()
            .map(|it| json!([it.name, it.description, it.parameters]))
            .collect::<Vec<_>>(),
        "turns": turns.collect::<Vec<_>>(),
        "calls": calls.collect::<Vec<_>>(),
        "shop": trajectory.read_state::<Value>("shop")?,
        "unknown": trajectory.state("unknown"),
    }))
}
