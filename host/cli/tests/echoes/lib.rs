use gavel_sdk::{Failure, Info, Judger, NoParams, PriorVerdict, Reference, Sample, Score, Verdict};

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
        Ok(samples.iter().map(|sample| echo(sample.verdict("quality"))).collect())
    }
}

fn echo(said: Option<PriorVerdict>) -> Verdict {
    match said {
        Some(PriorVerdict::Scored(said)) => {
            let note = said.note.unwrap_or_default().len() as f64;
            let score = Score::new(said.value).metric("note", note);
            said.metrics.into_iter().fold(score, |score, metric| score.metric(metric.name, metric.value)).into()
        }
        Some(PriorVerdict::Abstained(why)) => Verdict::abstain(why),
        Some(PriorVerdict::NoVerdict) => Score::new(-2.0).into(),
        Some(PriorVerdict::NotCalled) => Score::new(-3.0).into(),
        None => Score::new(-1.0).into(),
    }
}

gavel_sdk::export_judger!(Echoes);
