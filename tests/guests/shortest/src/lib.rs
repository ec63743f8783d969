//! A judger: 1 for the shortest responses of a group, 0 for the others. It
//! abstains if a response is empty, and cannot judge a group whose ground truth
//! is `none`.

use gavel_sdk::{Failure, Info, Judger, NoParams, Reference, Sample, Score, Verdict};

struct Shortest;

impl Judger for Shortest {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(0.0, 1.0)
    }

    fn judge(&self, samples: &[Sample], reference: &Reference) -> Result<Vec<Verdict>, Failure> {
        if reference.ground_truth().as_deref() == Some("none") {
            return Err(Failure::invalid_input("there is nothing to judge"));
        }
        let lengths: Vec<usize> = samples.iter().map(|sample| sample.response().len()).collect();
        let shortest = lengths.iter().copied().filter(|length| *length > 0).min();
        let verdict = |(sample, length): (&Sample, &usize)| match length {
            0 => Verdict::abstain("the response is empty"),
            _ => {
                Score::new(f64::from(Some(*length) == shortest)).metric("index", f64::from(sample.group_index())).into()
            }
        };
        Ok(samples.iter().zip(&lengths).map(verdict).collect())
    }
}

gavel_sdk::export_judger!(Shortest);
