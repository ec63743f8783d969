//! Steps that change nothing: why, and after how many of them a run stops.

use crate::error::{PipelineError, Result};
use crate::metrics::{members, outcomes, sample_name};
use crate::rl::advantages::DropReason;
use crate::rl::credit::CreditRule;
use gavel_config::{Config, RlTable, TrainTable};
use gavel_data::{Group, Member, OutcomeKind, ShownLines};

/// What a step learned from its rewards.
pub(crate) enum StepLearning {
    /// There was an update, and an advantage other than 0.
    Learned,
    /// All advantages were 0, for this reason.
    NoAdvantage(String),
    /// There was no update, for this reason.
    NoUpdate(String),
}

/// Counts the steps that learned nothing.
pub(crate) struct UnlearnedSteps {
    most: u64,
    steps: u64,
    /// The last steps in a row without an update.
    in_a_row: u64,
    /// The steps without an advantage, those without an update included.
    unlearned: u64,
}

impl UnlearnedSteps {
    /// The count for a run of `steps` steps, at its start.
    pub(crate) fn new(table: &RlTable, steps: u64) -> Self {
        Self { most: table.max_steps_without_update, steps, in_a_row: 0, unlearned: 0 }
    }

    /// Adds a step.
    ///
    /// # Errors
    /// There were too many without an update in a row, or all steps of the run learned nothing.
    pub(crate) fn add(&mut self, step: u64, learning: &StepLearning) -> Result<()> {
        let why = match learning {
            StepLearning::Learned => {
                self.in_a_row = 0;
                return Ok(());
            }
            StepLearning::NoAdvantage(why) => {
                self.in_a_row = 0;
                why
            }
            StepLearning::NoUpdate(why) => {
                self.in_a_row += 1;
                why
            }
        };
        self.unlearned += 1;
        let count = self.in_a_row;
        // A run that was resumed may have learned before.
        if count < self.most && (step < self.steps || self.unlearned < self.steps) {
            return Ok(());
        }
        let when = match (count < self.most, count, self.steps) {
            (true, _, 1) => "the run's only step".to_owned(),
            (true, ..) => "any step of the run".to_owned(),
            (false, 1, _) => format!("this step (train.max_steps_without_update = {count})"),
            (false, ..) => format!("{count} steps in a row (train.max_steps_without_update = {count})"),
        };
        let hint = match learning {
            StepLearning::NoAdvantage(_) => "compare the responses with their scores in the step's trajectories",
            _ => "look at the `reason` of each sample in the step's trajectories",
        };
        Err(PipelineError::Stopped(format!("step {step}: nothing was learned in {when}: {why}\nhint: {hint}")))
    }
}

/// Why all advantages of a step were 0, with the rewards whose score is always the same:
/// `the rewards of each group are equal (letter: always 0)`.
pub(crate) fn why_no_advantage(groups: &[&Group], config: &Config<RlTable>) -> String {
    if let Some(plugin) = config.train.advantage() {
        return format!("the advantage plugin `{plugin}` gave 0 for every token");
    }
    let weighted = config.reward.iter().filter(|reward| reward.weight != 0.0);
    let constant = weighted.filter_map(|reward| {
        let score = |member: &Member| member.outcome.plugins.get(&reward.name)?.outcome.score();
        let mut scores = members(groups.iter().copied()).filter_map(score);
        let first = scores.next()?;
        scores.all(|score| score == first).then(|| format!("{}: always {first}", reward.name))
    });
    let constant = constant.collect::<Vec<_>>().join(", ");
    let constant = if constant.is_empty() { constant } else { format!(" ({constant})") };
    format!("the rewards of each group are equal{constant}")
}

/// Why the groups of a step gave nothing to learn from.
pub(crate) fn why_unlearned(groups: &[&Group], config: &Config<RlTable>, rule: &CreditRule<'_>) -> String {
    let table = &config.train;
    let mut unrewarded = members(groups.iter().copied()).filter(|member| member.outcome.reward.is_none()).peekable();
    let first = unrewarded.peek().map(|first| {
        let reason = first.outcome.reason.as_deref().unwrap_or("no reason is known");
        format!("the first: {}: {}", sample_name(&first.sample), ShownLines(reason))
    });
    if unrewarded.count() == members(groups.iter().copied()).count() {
        let counts = Some(counts(groups, config)).filter(|counts| !counts.is_empty());
        let known = counts.into_iter().chain(first).collect::<Vec<_>>().join("; ");
        let known = if known.is_empty() { known } else { format!(" ({known})") };
        return format!("no sample had a reward{known}");
    }
    let of_kind =
        |kind: DropReason| groups.iter().filter(|group| DropReason::of(group, table, rule) == Some(kind)).count();
    let (few, equal) = (of_kind(DropReason::TooFewScored), of_kind(DropReason::EqualRewards));
    let few = (few > 0).then(|| {
        let first = first.map(|first| format!("; {first}")).unwrap_or_default();
        format!("{few} had fewer than train.min_scored = {} samples with a reward{first}", table.min_scored())
    });
    let equal = (equal > 0).then(|| format!("{equal} had equal rewards"));
    let truncated = (table.mask_truncated && few.is_none() && equal.is_none())
        .then(|| "their responses were truncated, and train.mask_truncated leaves these out".to_owned());
    let rejected = table.algorithm().leaves_out() && few.is_none() && equal.is_none();
    let rejected = rejected.then(|| "no sample was good enough to imitate".to_owned());
    let why = few.into_iter().chain(equal).chain(truncated).chain(rejected).collect::<Vec<_>>().join(", ");
    format!("none of {} groups could be learned from ({why})", groups.len())
}

/// The outcomes without a score of the rewards with a weight: `judge: 3 abstained, 1 fault`.
fn counts(groups: &[&Group], config: &Config<RlTable>) -> String {
    let outcomes = outcomes(groups.iter().copied());
    let weighted = config.reward.iter().filter(|reward| reward.weight != 0.0);
    let said = weighted.filter_map(|reward| {
        let counts = outcomes.get(&reward.name)?;
        let missing = OutcomeKind::ALL.into_iter().filter(|kind| *kind != OutcomeKind::Scored);
        let counts = missing.filter_map(|kind| Some(format!("{} {}", counts.get(kind.as_str())?, kind.as_str())));
        let counts = counts.collect::<Vec<_>>().join(", ");
        (!counts.is_empty()).then(|| format!("{}: {counts}", reward.name))
    });
    said.collect::<Vec<_>>().join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{group, rl_table};
    use gavel_data::{Evaluation, Outcome};

    /// The step that stops a run, and the error.
    fn stopped(text: &str, learned: &[bool]) -> (usize, String) {
        let mut steps = UnlearnedSteps::new(&rl_table(text), learned.len() as u64);
        for (step, learned) in (1..).zip(learned) {
            let learning = match learned {
                true => StepLearning::Learned,
                false => StepLearning::NoUpdate("no sample had a reward".into()),
            };
            if let Err(error) = steps.add(step, &learning) {
                return (step as usize, error.to_string());
            }
        }
        (0, String::new())
    }

    #[test]
    fn a_run_that_learns_nothing_stops_and_never_ends_well() {
        let (step, error) = stopped("", &[true, false, false, true, false, false, false, true]);
        assert_eq!(step, 7);
        assert!(
            error.starts_with(
                "step 7: nothing was learned in 3 steps in a row (train.max_steps_without_update = 3): no sample had"
            ),
            "{error}"
        );
        assert_eq!(stopped("", &[true, false, false, true, false, false]).0, 0);
        assert_eq!(stopped("max_steps_without_update = 1", &[true, false]).0, 2);
        for (steps, said) in [
            (1, "step 1: nothing was learned in the run's only step: "),
            (2, "step 2: nothing was learned in any step of the run: "),
        ] {
            let (step, error) = stopped("", &vec![false; steps]);
            assert!(step == steps && error.starts_with(said), "{error}");
        }
    }

    #[test]
    fn a_step_without_a_reward_says_what_is_known() {
        let mut config: Config<RlTable> = toml::from_str(
            "model = { path = 'm' }\ndata = { train = 't' }\nrollout = { group_size = 2, max_tokens = 1 }\n\
             train = { steps = 1, prompts_per_step = 1, learning_rate = 1e-3 }",
        )
        .unwrap();
        config.reward.push(toml::from_str("name = 'judge'\npath = 'judge.wasm'").unwrap());
        let why = |groups: &[&Group]| why_unlearned(groups, &config, &CreditRule::plain());
        assert_eq!(why(&[]), "no sample had a reward");
        // Without a verdict, as where no reward was asked.
        let mut group = group(&[(OutcomeKind::Abstained, None); 2]);
        let first = "the first: sample 0 of t: no reason is known";
        assert_eq!(why(&[&group]), format!("no sample had a reward ({first})"));
        for member in &mut group.members {
            let abstained = Evaluation::without_call(Outcome::Abstained("mine".into()));
            member.outcome.plugins.insert("judge".into(), abstained);
        }
        assert_eq!(why(&[&group]), format!("no sample had a reward (judge: 2 abstained; {first})"));
    }

    #[test]
    fn a_run_without_an_advantage_does_not_end_well() {
        let last = |learned: &[StepLearning]| {
            let mut steps = UnlearnedSteps::new(&rl_table(""), 4);
            let mut results: Vec<_> = (1..).zip(learned).map(|(step, learning)| steps.add(step, learning)).collect();
            let last = results.pop().unwrap();
            assert!(results.iter().all(Result::is_ok));
            last.map_err(|error| error.to_string())
        };
        let equal = || StepLearning::NoAdvantage("the rewards of each group are equal (letter: always 0)".into());
        let none = || StepLearning::NoUpdate("no sample had a reward".into());
        let error = last(&[none(), none(), equal(), equal()]).unwrap_err();
        let expected = "step 4: nothing was learned in any step of the run: the rewards of each group are equal (letter: always 0)\nhint: compare";
        assert!(error.starts_with(expected), "{error}");
        let error = last(&[equal(), equal(), equal(), none()]).unwrap_err();
        assert!(error.starts_with("step 4: nothing was learned in any step of the run: no sample had"), "{error}");
        assert_eq!(last(&[equal(), equal(), StepLearning::Learned, equal()]), Ok(()));
        assert_eq!(last(&[equal(), equal(), equal()]), Ok(()));
    }
}
