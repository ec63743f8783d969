//! Tells in its state what it sees, with numbers in quarters, draws the last row and the first, and refuses a group.

use gavel_sdk::sampler::{Answer, EndedGroup, EndedSample, Request, SampleOutcome};
use gavel_sdk::{Failure, Info, NoParams, Sampler};

struct Echo;

impl Sampler for Echo {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new("echo", "1").pure()
    }

    fn sample(&self, request: &Request) -> Result<Answer, Failure> {
        let before = String::from_utf8_lossy(&request.state);
        let numbers = [request.step, request.seed, request.wanted.into(), request.next_draw, request.rows()];
        let mut seen = vec![format!("{before} {}", numbers.map(|number| number.to_string()).join(" "))];
        for dataset in &request.datasets {
            seen.push(format!("{} {}", dataset.rows, quarters(dataset.weight.unwrap_or_default())));
        }
        for group in &request.ended {
            seen.push(described(request, group));
            seen.extend(group.samples.iter().map(sample));
        }
        let draws = vec![request.task(request.rows() - 1), request.task(0)];
        Ok(Answer::new(draws).refuse(request.ended[0].draw, "seen").state(seen.join(" | ")))
    }
}

gavel_sdk::export_sampler!(Echo);

fn quarters(value: f64) -> String {
    ((value * 4.0) as i64).to_string()
}

fn described(request: &Request, group: &EndedGroup) -> String {
    let mean = group.mean_reward().map_or("none".into(), quarters);
    let texts = [&group.data_source, &group.dropped].map(|text| text.as_deref().unwrap_or("none"));
    let EndedGroup { draw, task, task_id, version, .. } = group;
    format!("{draw} {} {} {task_id} {} {version} {} {mean}", request.row(task), task.dataset, texts[0], texts[1])
}

fn sample(EndedSample { outcome, reward, metrics }: &EndedSample) -> String {
    let outcome = match outcome {
        SampleOutcome::Scored => "scored",
        SampleOutcome::Abstained => "abstained",
        SampleOutcome::Fault => "fault",
        SampleOutcome::OutOfBudget => "out-of-budget",
        SampleOutcome::Unavailable => "unavailable",
    };
    let mut text = format!("{outcome} {}", reward.map_or("none".into(), quarters));
    metrics.iter().for_each(|metric| text += &format!(" {}={}", metric.name, quarters(metric.value)));
    text
}
