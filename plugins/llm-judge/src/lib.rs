//! Judges the responses of a group with a language model: each by itself, in
//! pairs, or by a list of criteria.

mod pairwise;
mod params;
mod rubric;
mod single;

use gavel_sdk::{Failure, Info, Judger, Reference, Sample, Verdict};
use model_judging::{Task, conversation, verdicts};
use params::{Judge, Mode, Params};

impl Judger for Judge {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        params.check()
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).score_range(0.0, 1.0)
    }

    fn judge(&self, samples: &[Sample], reference: &Reference) -> Result<Vec<Verdict>, Failure> {
        let Some(first) = samples.first() else { return Ok(Vec::new()) };
        let reference = reference.ground_truth();
        if reference.is_none() && self.needs_reference() {
            return Err(Failure::invalid_input(
                "the row has no ground truth, which this judge needs: leave {reference} out of `prompt`, \
                 or set `against = \"others\"`",
            ));
        }
        let task = Task { prompt: conversation(&first.prompt()), reference, rubric: self.rubric.clone() };
        let responses: Vec<String> = samples.iter().map(Sample::response).collect();
        let judged = match &self.mode {
            Mode::Single => single::judge(self, &task, &responses),
            Mode::Pairwise { against } => pairwise::judge(self, &task, &responses, *against),
            Mode::Rubric { criteria } => rubric::judge(self, &task, &responses, criteria),
        };
        verdicts(judged)
    }
}

gavel_sdk::export_judger!(Judge);
