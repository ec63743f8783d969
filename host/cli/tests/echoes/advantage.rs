//! Tells in its state what it sees, with numbers in quarters, and gives an advantage of each form.

use gavel_sdk::advantage::{Estimates, Group, Part, SampleAdvantage, Trajectory};
use gavel_sdk::{Advantage, Failure, FinishReason, Info, NoParams};

struct Echo;

impl Advantage for Echo {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new("echo", "1").pure()
    }

    fn estimate(&self, step: u64, groups: &[Group], state: &[u8]) -> Result<Estimates, Failure> {
        let [group] = groups else { return Err(Failure::internal("there is not one group")) };
        let source = group.data_source.as_deref().unwrap_or("none");
        let before = String::from_utf8_lossy(state);
        let mut seen = vec![format!("{before} {step} {} {source} [{}]", group.task_id, group.speaker)];
        for sample in &group.samples {
            seen.extend(sample.parts.iter().map(part));
            seen.extend(sample.trajectories.iter().map(trajectory));
        }
        let advantages = vec![
            SampleAdvantage::Sample(group.samples[0].reward),
            SampleAdvantage::Trajectories(vec![0.5, 1.5]),
            SampleAdvantage::Tokens(vec![group.samples[2].trajectories[0].spread(7.0)]),
        ];
        Ok(Estimates::new(vec![advantages]).state(seen.join(" | ")))
    }
}

gavel_sdk::export_advantage!(Echo);

fn quarters(value: f64) -> String {
    ((value * 4.0) as i64).to_string()
}

fn part(Part { reward, weight, score, counted, metrics }: &Part) -> String {
    let score = score.map_or("none".into(), quarters);
    let mut text = format!("{reward} {} {score} {}", quarters(*weight), quarters(*counted));
    metrics.iter().for_each(|metric| text += &format!(" {}={}", metric.name, quarters(metric.value)));
    text
}

fn trajectory(one: &Trajectory) -> String {
    let is_truncated = u8::from(one.finish_reason == FinishReason::Length);
    let mut text = format!("{} {} {is_truncated} {}", one.index, one.prompt_tokens, one.response_tokens);
    one.learned.iter().for_each(|span| text += &format!(" {}-{}", span.start, span.end));
    for credit in &one.credit {
        text += &format!(" {}-{}:{}", credit.tokens.start, credit.tokens.end, quarters(credit.value));
    }
    let version = |version: Option<u64>| version.map_or("none".into(), |version| version.to_string());
    let versions = [version(one.oldest_version), version(one.newest_version)].join(" ");
    format!("{text} {} {} {versions}", quarters(one.penalty), quarters(one.logprob))
}
