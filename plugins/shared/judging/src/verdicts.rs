//! The verdicts on a group, of which some may be missing.

use crate::ask::Missing;
use gavel_sdk::{Failure, Score, Verdict};

/// A sample that could not be judged abstains. If none could be judged, the
/// group fails. If the model did not answer, another attempt may succeed. If a
/// request was refused, the key may be wrong, which abstentions would hide.
///
/// # Errors
/// None could be judged, and the model did not answer or refused.
pub fn verdicts(judged: Vec<Result<Score, Missing>>) -> Result<Vec<Verdict>, Failure> {
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
