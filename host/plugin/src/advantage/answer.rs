//! Checks the advantages that a component returned.

use crate::bindings::exports::gavel::plugin::advantage::{Estimates, Group, SampleAdvantage, ScoredSample};
use crate::decision::check_state;

/// The rule that an answer for `groups` breaks: numbers are missing or there are too many, or one is not finite.
pub(super) fn check(answer: &Estimates, groups: &[Group]) -> Result<(), String> {
    let Estimates { advantages, state } = answer;
    check_state(state)?;
    if advantages.len() != groups.len() {
        return Err(format!("advantages of {} groups were given for {} groups", advantages.len(), groups.len()));
    }
    for (number, (group, advantages)) in groups.iter().zip(advantages).enumerate() {
        check_group(advantages, group).map_err(|what| format!("group {number} (task {}){what}", group.task_id))?;
    }
    Ok(())
}

/// The end of the message, after the group.
fn check_group(advantages: &[SampleAdvantage], group: &Group) -> Result<(), String> {
    let Group { samples, .. } = group;
    if advantages.len() != samples.len() {
        return Err(format!(": {} advantages were given for {} samples", advantages.len(), samples.len()));
    }
    for (sample, advantage) in samples.iter().zip(advantages) {
        check_sample(advantage, sample).map_err(|what| format!(", sample {}{what}", sample.index))?;
    }
    Ok(())
}

/// The same, after the sample.
fn check_sample(advantage: &SampleAdvantage, sample: &ScoredSample) -> Result<(), String> {
    let trajectories = &sample.trajectories;
    let count = |given: usize| match given == trajectories.len() {
        true => Ok(()),
        false => Err(format!(": advantages of {given} trajectories were given for {}", trajectories.len())),
    };
    match advantage {
        SampleAdvantage::Sample(value) => number(*value).map_err(|what| format!(": the advantage is {what}")),
        SampleAdvantage::Trajectories(values) => {
            count(values.len())?;
            let mut of_each = trajectories.iter().zip(values);
            of_each.try_for_each(|(trajectory, value)| {
                let named = |what| format!(", trajectory {}: the advantage is {what}", trajectory.index);
                number(*value).map_err(named)
            })
        }
        SampleAdvantage::Tokens(all) => {
            count(all.len())?;
            for (trajectory, values) in trajectories.iter().zip(all) {
                let named = |what| format!(", trajectory {}: {what}", trajectory.index);
                let tokens = trajectory.response_tokens as usize;
                if values.len() != tokens {
                    return Err(named(format!("{} advantages were given for {tokens} tokens", values.len())));
                }
                let mut of_tokens = values.iter().enumerate();
                let wrong = of_tokens.find_map(|(at, value)| Some((at, number(*value).err()?)));
                if let Some((at, what)) = wrong {
                    return Err(named(format!("the advantage of token {at} is {what}")));
                }
            }
            Ok(())
        }
    }
}

/// Refuses a number that an update cannot learn from; its numbers have 32 bits.
fn number(value: f64) -> Result<(), String> {
    match (value.is_finite(), (value as f32).is_finite()) {
        (true, true) => Ok(()),
        (true, false) => Err(format!("{value:e}, more than a number of 32 bits holds")),
        (false, _) => Err(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::exports::gavel::plugin::advantage::Trajectory;
    use crate::bindings::gavel::plugin::types::FinishReason;
    use crate::decision::MOST_STATE;

    /// A group of two samples, whose trajectories have these numbers of tokens.
    fn group() -> Group {
        let trajectory = |(index, response_tokens): (u32, u32)| Trajectory {
            index,
            finish_reason: FinishReason::Stop,
            prompt_tokens: 1,
            response_tokens,
            learned: Vec::new(),
            credit: Vec::new(),
            penalty: 0.0,
            logprob: -1.0,
            oldest_version: None,
            newest_version: None,
        };
        let sample = |index: u32, tokens: &[u32]| {
            let trajectories = (0..).zip(tokens.iter().copied()).map(trajectory).collect();
            ScoredSample { index, reward: 0.0, parts: Vec::new(), trajectories }
        };
        // The sample 1 has no reward.
        let samples = vec![sample(0, &[3]), sample(2, &[2, 1])];
        Group { task_id: "t".into(), data_source: None, speaker: String::new(), samples }
    }

    fn checked(second: SampleAdvantage) -> Result<(), String> {
        let advantages = vec![vec![SampleAdvantage::Sample(0.5), second]];
        check(&Estimates { advantages, state: Vec::new() }, &[group()])
    }

    #[test]
    fn whole_answers_are_taken() {
        assert_eq!(checked(SampleAdvantage::Sample(-0.0)), Ok(()));
        assert_eq!(checked(SampleAdvantage::Trajectories(vec![1.0, 1e-300])), Ok(()));
        assert_eq!(checked(SampleAdvantage::Tokens(vec![vec![0.0, 1.0], vec![-1.0]])), Ok(()));
        assert_eq!(check(&Estimates { advantages: Vec::new(), state: vec![0; MOST_STATE] }, &[]), Ok(()));
    }

    #[test]
    fn a_wrong_number_is_named_by_group_sample_and_trajectory() {
        let sample = "group 0 (task t), sample 2";
        let wrong = |advantage| checked(advantage).unwrap_err();
        assert_eq!(wrong(SampleAdvantage::Sample(f64::NAN)), format!("{sample}: the advantage is NaN"));
        assert_eq!(
            wrong(SampleAdvantage::Trajectories(vec![0.0, f64::INFINITY])),
            format!("{sample}, trajectory 1: the advantage is inf")
        );
        assert_eq!(
            wrong(SampleAdvantage::Tokens(vec![vec![0.0, 1e300], vec![0.0]])),
            format!("{sample}, trajectory 0: the advantage of token 1 is 1e300, more than a number of 32 bits holds")
        );
    }

    #[test]
    fn another_length_is_named_too() {
        let sample = "group 0 (task t), sample 2";
        let wrong = |advantage| checked(advantage).unwrap_err();
        assert_eq!(
            wrong(SampleAdvantage::Trajectories(vec![0.0])),
            format!("{sample}: advantages of 1 trajectories were given for 2")
        );
        assert_eq!(
            wrong(SampleAdvantage::Tokens(vec![vec![0.0, 0.0], vec![0.0; 4]])),
            format!("{sample}, trajectory 1: 4 advantages were given for 1 tokens")
        );
        let answer = |advantages| Estimates { advantages, state: Vec::new() };
        assert_eq!(
            check(&answer(vec![Vec::new()]), &[group()]).unwrap_err(),
            "group 0 (task t): 0 advantages were given for 2 samples"
        );
        assert_eq!(
            check(&answer(Vec::new()), &[group()]).unwrap_err(),
            "advantages of 0 groups were given for 1 groups"
        );
        let grown = Estimates { state: vec![0; MOST_STATE + 1], ..answer(Vec::new()) };
        assert_eq!(check(&grown, &[]).unwrap_err(), "the state has 1048577 bytes, more than the 1048576 allowed");
    }
}
