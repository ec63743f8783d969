use gavel_sdk::{Failure, Info, Judger, NoParams, PriorVerdict, Reference, Sample, Score, Trajectory, Verdict};

struct Echoes;

impl Judger for Echoes {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn judge(&self, samples: &[Sample], _: &Reference) -> Result<Vec<Verdict>, Failure> {
        Ok(samples.iter().map(|sample| echo(sample, sample.verdict("quality"))).collect())
    }
}

/// Counts what the trace has; without an agent and a policy, only the prompt.
fn seen(sample: &Sample) -> usize {
    let of = |each: Trajectory| {
        let turn = each.turn_finish_reason(0).is_some() || each.message_tokens(0).is_some();
        let parts = each.speaker().len() + each.functions().len() + each.calls().len() + each.opening().len();
        parts + usize::from(turn) + usize::from(each.state("shop").is_some())
    };
    sample.trajectories().map(of).sum::<usize>() + usize::from(sample.extra().is_some())
}

fn echo(sample: &Sample, said: Option<PriorVerdict>) -> Verdict {
    match said {
        Some(PriorVerdict::Scored(said)) => {
            let note = said.note.unwrap_or_default().len() as f64;
            let score = Score::new(said.value).metric("note", note).metric("seen", seen(sample) as f64);
            said.metrics.into_iter().fold(score, |score, metric| score.metric(metric.name, metric.value)).into()
        }
        Some(PriorVerdict::Abstained(why)) => Verdict::abstain(why),
        Some(PriorVerdict::NoVerdict) => Score::new(-2.0).into(),
        Some(PriorVerdict::NotCalled) => Score::new(-3.0).into(),
        None => Score::new(-1.0).into(),
    }
}

gavel_sdk::export_judger!(Echoes);
