//! A judger that compares another reward's verdicts about the samples of a
//! group: each gets the share of scores below its own. It abstains if the other
//! reward did. The note has the verdict that it saw.

use gavel_sdk::{Failure, Info, Judger, PriorVerdict, Reference, Sample, Score, Verdict};

struct Ranks {
    by: String,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The other reward's name.
    by: String,
}

impl Judger for Ranks {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self { by: params.by })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(0.0, 1.0)
    }

    fn judge(&self, samples: &[Sample], _: &Reference) -> Result<Vec<Verdict>, Failure> {
        let seen: Vec<Option<PriorVerdict>> = samples.iter().map(|sample| sample.verdict(&self.by)).collect();
        let scores: Vec<f64> = seen.iter().flatten().filter_map(PriorVerdict::score).collect();
        let verdict = |seen: &Option<PriorVerdict>| match seen {
            Some(PriorVerdict::Scored(score)) => {
                let below = scores.iter().filter(|other| **other < score.value).count();
                let share = below as f64 / scores.len() as f64;
                let note = score.note.as_deref().unwrap_or("no note");
                let metrics: f64 = score.metrics.iter().map(|metric| metric.value).sum();
                Score::new(share).note(format!("scored {}, {note}", score.value)).metric("sum", metrics).into()
            }
            Some(PriorVerdict::Abstained(why)) => Verdict::abstain(format!("abstained: {why}")),
            Some(PriorVerdict::NotCalled) => Verdict::abstain("not called"),
            Some(PriorVerdict::NoVerdict) => Verdict::abstain("no verdict"),
            None => Verdict::abstain("nothing is shown"),
        };
        Ok(seen.iter().map(verdict).collect())
    }
}

gavel_sdk::export_judger!(Ranks);
