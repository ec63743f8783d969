//! Scores 1 where the last boxed answer equals the ground truth after the
//! normalisation of the MATH dataset, and 0 where it differs or there is none:
//! the rule of verl for the MATH family.

mod normalize;

use answer_rules::balanced;
use gavel_sdk::{Failure, Info, NoParams, Reference, Reward, Sample, Score, Verdict};

struct Math;

impl Reward for Math {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure().score_range(0.0, 1.0)
    }

    fn score(&self, sample: &Sample, reference: &Reference) -> Result<Verdict, Failure> {
        let truth = reference.require_ground_truth()?;
        if normalize::is_blank(&truth) {
            return Err(Failure::invalid_input(format!(
                "the ground truth {truth:?} is blank after normalisation: an empty box would equal it"
            )));
        }
        let response = sample.response();
        let answer = boxed(&response);
        let correct = answer.is_some_and(|answer| normalize::equivalent(answer, &truth));
        let score = Score::new(f64::from(correct)).metric("answered", f64::from(answer.is_some()));
        Ok(score.note(answer.unwrap_or(r"no \boxed{…} in the response")).into())
    }
}

gavel_sdk::export_reward!(Math);

/// The content of the last `\boxed{…}`. If the text has `\boxed ` with a space,
/// it is instead the text after the last of those, up to a dollar sign.
fn boxed(text: &str) -> Option<&str> {
    if let Some((_, rest)) = text.rsplit_once(r"\boxed ") {
        return Some(rest.split_once('$').map_or(rest, |(answer, _)| answer));
    }
    let last = balanced(&text[text.rfind(r"\boxed")?..])?;
    last.strip_prefix(r"\boxed{")?.strip_suffix('}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_box_counts_with_the_braces_inside() {
        assert_eq!(boxed(r"\boxed{1} or $\boxed{\frac{1}{\sqrt{2}}}$."), Some(r"\frac{1}{\sqrt{2}}"));
        assert_eq!(boxed(r"\boxed{\text{so }\boxed{7}}"), Some("7"));
        assert_eq!(boxed(r"\boxed{}"), Some(""));
    }

    #[test]
    fn a_box_that_is_not_closed_or_not_braced_is_none() {
        for text in
            ["42", r"\boxed{\frac{1}{2}", r"\boxed{1} then \boxed{2", r"\boxed\frac{1}{2}", r"\fbox{3}", r"\boxed"]
        {
            assert_eq!(boxed(text), None, "{text}");
        }
    }

    #[test]
    fn a_box_with_a_space_runs_to_the_dollar() {
        assert_eq!(boxed(r"$\boxed 42$ and $\boxed{7}$"), Some("42"));
        assert_eq!(boxed(r"\boxed 42"), Some("42"));
    }
}
