//! Judges the responses of a group by a language model: each by itself, in
//! pairs, or by a list of criteria.

mod ask;
mod claim;
mod ending_object;
mod pairwise;
mod params;
mod parse;
mod prompt;
mod rubric;
mod single;

use ask::Missing;
use gavel_sdk::{Failure, Info, Judger, Reference, Sample, Score, Verdict};
use params::{Judge, Mode, Params};
use prompt::Task;

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
        let task = Task { prompt: prompt::conversation(&first.prompt()), reference, rubric: self.rubric.clone() };
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

/// A sample that could not be judged abstains. If none could be judged, the
/// group fails. If the model did not answer, another attempt may succeed. If a
/// request was refused, the key may be wrong, which abstentions would hide.
fn verdicts(judged: Vec<Result<Score, Missing>>) -> Result<Vec<Verdict>, Failure> {
    if judged.iter().all(Result::is_err) {
        let missing = || judged.iter().filter_map(|each| each.as_ref().err());
        let unavailable = missing().find_map(|each| match each {
            Missing::Unavailable(what) => Some(Failure::unavailable(what)),
            _ => None,
        });
        let refused = missing().find_map(|each| match each {
            Missing::Refused(what) => Some(Failure::internal(what)),
            _ => None,
        });
        if let Some(failure) = unavailable.or(refused) {
            return Err(failure);
        }
    }
    let verdict = |each: Result<Score, Missing>| match each {
        Ok(score) => score.into(),
        Err(missing) => Verdict::Abstained(missing.to_string()),
    };
    Ok(judged.into_iter().map(verdict).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_is_judged_is_kept_and_the_others_abstain() {
        let down = || Err(Missing::Unavailable("busy".into()));
        let found = verdicts(vec![Ok(Score::new(0.5)), down()]).unwrap();
        assert!(matches!(&found[0], Verdict::Scored(score) if score.value == 0.5));
        assert!(matches!(&found[1], Verdict::Abstained(what) if what.contains("busy")));
        let failure = verdicts(vec![down(), Err(Missing::Unclear("?".into()))]).unwrap_err();
        assert!(matches!(failure, Failure::Unavailable(what) if what == "busy"));
        assert_eq!(verdicts(vec![Err(Missing::Unclear("?".into()))]).unwrap().len(), 1);
    }

    #[test]
    fn a_refusal_fails_the_group_only_where_nobody_is_judged() {
        let refused = || Err(Missing::Refused("too long".into()));
        let found = verdicts(vec![refused(), Ok(Score::new(0.5))]).unwrap();
        assert!(matches!(&found[0], Verdict::Abstained(what) if what == "refused: too long"));
        let failure = verdicts(vec![Err(Missing::Unclear("?".into())), refused()]).unwrap_err();
        assert!(matches!(failure, Failure::Internal(what) if what == "too long"));
        let failure = verdicts(vec![refused(), Err(Missing::Unavailable("busy".into()))]).unwrap_err();
        assert!(matches!(failure, Failure::Unavailable(_)));
    }
}
