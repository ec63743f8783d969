//! Steps that change nothing: why, and after how many of them a run stops.

use crate::error::{PipelineError, Result};
use crate::metrics::{members, outcomes, sample_name};
use crate::rl::credit::CreditRule;
use crate::samples::{DrawnGroup, DropReason};
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
    /// There was no update because a sampler refused each group.
    AllRefused(String),
}

/// The groups that a step considered.
pub(crate) struct ConsideredGroups<'a> {
    /// The groups that a sampler refused.
    pub(crate) refused: Vec<&'a Group>,
    pub(crate) others: Vec<&'a Group>,
}

impl<'a> ConsideredGroups<'a> {
    pub(crate) fn of(drawn: impl Iterator<Item = &'a DrawnGroup>) -> Self {
        let (refused, others): (Vec<_>, Vec<_>) = drawn.partition(|drawn| drawn.is_refused());
        let groups = |drawn: Vec<&'a DrawnGroup>| drawn.into_iter().map(|drawn| &drawn.group).collect();
        Self { refused: groups(refused), others: groups(others) }
    }
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
            StepLearning::NoUpdate(why) | StepLearning::AllRefused(why) => {
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
            StepLearning::AllRefused(_) => "look at the sampler's reasons, groups/refused/* in the step's metrics",
            _ => "look at the `reason` of each sample in the step's trajectories",
        };
        Err(PipelineError::Stopped(format!("step {step}: nothing was learned in {when}: {why}\nhint: {hint}")))
    }
}

/// Why all advantages of a step were 0, with the rewards whose score is always the same:
/// `the rewards of each group are equal (letter: always 0)`.
pub(crate) fn why_no_advantage(groups: &ConsideredGroups<'_>, config: &Config<RlTable>) -> String {
    if let Some(plugin) = config.train.advantage() {
        return format!("the advantage plugin `{plugin}` gave 0 for every token");
    }
    let weighted = config.reward.iter().filter(|reward| reward.weight != 0.0);
    let constant = weighted.filter_map(|reward| {
        let score = |member: &Member| member.outcome.plugins.get(&reward.name)?.outcome.score();
        let mut scores = members(groups.others.iter().copied()).filter_map(score);
        let first = scores.next()?;
        scores.all(|score| score == first).then(|| format!("{}: always {first}", reward.name))
    });
    let constant = constant.collect::<Vec<_>>().join(", ");
    let constant = if constant.is_empty() { constant } else { format!(" ({constant})") };
    format!("the rewards of each group are equal{constant}")
}

/// Why the groups of a step gave no update.
pub(crate) fn why_unlearned(
    ConsideredGroups { refused, others }: &ConsideredGroups<'_>,
    config: &Config<RlTable>,
    rule: &CreditRule<'_>,
) -> StepLearning {
    let table = &config.train;
    // The samples of refused groups are no cause.
    let members = || members(others.iter().copied());
    let mut unrewarded = members().filter(|member| member.outcome.reward.is_none()).peekable();
    let first = unrewarded.peek().map(|first| {
        let reason = first.outcome.reason.as_deref().unwrap_or("no reason is known");
        format!("the first: {}: {}", sample_name(&first.sample), ShownLines(reason))
    });
    if refused.is_empty() && unrewarded.count() == members().count() {
        let counts = Some(counts(others, config)).filter(|counts| !counts.is_empty());
        let known = counts.into_iter().chain(first).collect::<Vec<_>>().join("; ");
        let known = if known.is_empty() { known } else { format!(" ({known})") };
        return StepLearning::NoUpdate(format!("no sample had a reward{known}"));
    }
    let reasons: Vec<DropReason> = others.iter().filter_map(|group| DropReason::of(group, table, rule)).collect();
    let of_kind = |kind: DropReason| reasons.iter().filter(|reason| **reason == kind).count();
    let (few, equal) = (of_kind(DropReason::TooFewScored), of_kind(DropReason::EqualRewards));
    let few = (few > 0).then(|| {
        let first = first.map(|first| format!("; {first}")).unwrap_or_default();
        format!("{few} had fewer than train.min_scored = {} samples with a reward{first}", table.min_scored())
    });
    let equal = (equal > 0).then(|| format!("{equal} had equal rewards"));
    let all = others.len() + refused.len();
    let mut why: Vec<String> = few.into_iter().chain(equal).collect();
    if why.is_empty() && !others.is_empty() {
        let truncated = "their responses were truncated, and train.mask_truncated leaves these out";
        let rejected = "no sample was good enough to imitate";
        why.extend(table.mask_truncated.then(|| truncated.to_owned()));
        why.extend(table.algorithm().leaves_out().then(|| rejected.to_owned()));
    }
    if !refused.is_empty() {
        why.insert(0, format!("{} were refused by the sampler", refused.len()));
    }
    let why = format!("none of {all} groups could be learned from ({})", why.join(", "));
    if others.is_empty() { StepLearning::AllRefused(why) } else { StepLearning::NoUpdate(why) }
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
    use gavel_data::{Evaluation, Outcome, Score};

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
        let why = |groups: &[&Group]| {
            let groups = ConsideredGroups { refused: Vec::new(), others: groups.to_vec() };
            no_update(why_unlearned(&groups, &config, &CreditRule::plain()))
        };
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

    fn no_update(learning: StepLearning) -> String {
        match learning {
            StepLearning::NoUpdate(why) => why,
            _ => panic!("the sampler is the only cause, or there was an update"),
        }
    }

    #[test]
    fn groups_that_a_sampler_refused_are_named_before_other_reasons() {
        let config: Config<RlTable> = toml::from_str(
            "model = { path = 'm' }\ndata = { train = 't' }\nrollout = { group_size = 2, max_tokens = 1 }\n\
             train = { steps = 1, prompts_per_step = 1, learning_rate = 1e-3, mask_truncated = true, algorithm = 'raft' }",
        )
        .unwrap();
        let why = |others: &[&Group], refused: &[&Group]| {
            let groups = ConsideredGroups { refused: refused.to_vec(), others: others.to_vec() };
            why_unlearned(&groups, &config, &CreditRule::plain())
        };
        let unequal = group(&[(OutcomeKind::Scored, Some(1.0)), (OutcomeKind::Scored, Some(0.0))]);
        let none = "none of 2 groups could be learned from";
        let StepLearning::AllRefused(refused) = why(&[], &[&unequal; 2]) else { panic!("there is another cause") };
        assert_eq!(refused, format!("{none} (2 were refused by the sampler)"));
        let masked = "their responses were truncated, and train.mask_truncated leaves these out";
        let masked = format!("{masked}, no sample was good enough to imitate");
        assert_eq!(no_update(why(&[&unequal; 2], &[])), format!("{none} ({masked})"));
        assert_eq!(
            no_update(why(&[&unequal], &[&unequal])),
            format!("{none} (1 were refused by the sampler, {masked})")
        );
        // The sample that is named is of a group that the sampler did not refuse.
        let unrewarded = [OutcomeKind::Abstained, OutcomeKind::Fault].map(|kind| group(&[(kind, None); 2]));
        let StepLearning::AllRefused(refused) = why(&[], &[&unrewarded[0], &unrewarded[1]]) else {
            panic!("there is another cause")
        };
        assert_eq!(refused, format!("{none} (2 were refused by the sampler)"));
        let few = "1 had fewer than train.min_scored = 2 samples with a reward; the first: sample 0 of t: ";
        let mixed = no_update(why(&[&unrewarded[0]], &[&unrewarded[1]]));
        assert!(mixed.starts_with(&format!("{none} (1 were refused by the sampler, {few}")), "{mixed}");
    }

    #[test]
    fn a_reward_that_differs_in_refused_groups_alone_is_constant() {
        let mut config: Config<RlTable> = toml::from_str(
            "model = { path = 'm' }\ndata = { train = 't' }\nrollout = { group_size = 2, max_tokens = 1 }\n\
             train = { steps = 1, prompts_per_step = 1, learning_rate = 1e-3 }",
        )
        .unwrap();
        config.reward.push(toml::from_str("name = 'letter'\npath = 'letter.wasm'").unwrap());
        let scored = |scores: [f64; 2]| {
            let mut group = group(&scores.map(|score| (OutcomeKind::Scored, Some(score))));
            for (member, score) in group.members.iter_mut().zip(scores) {
                let evaluation = Evaluation::without_call(Outcome::Scored(Score { value: score, ..Score::default() }));
                member.outcome.plugins.insert("letter".into(), evaluation);
            }
            group
        };
        let (equal, unequal) = (scored([0.0; 2]), scored([0.0, 1.0]));
        let why = |refused: &[&Group], others: &[&Group]| {
            why_no_advantage(&ConsideredGroups { refused: refused.to_vec(), others: others.to_vec() }, &config)
        };
        assert_eq!(why(&[&unequal], &[&equal]), "the rewards of each group are equal (letter: always 0)");
        assert_eq!(why(&[], &[&equal, &unequal]), "the rewards of each group are equal");
    }

    #[test]
    fn the_hint_names_the_refusals_where_they_are_the_only_cause() {
        let hint = |learning: StepLearning| {
            let mut steps = UnlearnedSteps::new(&rl_table("max_steps_without_update = 1"), 9);
            let error = steps.add(1, &learning).unwrap_err().to_string();
            error.split_once("\nhint: ").unwrap().1.to_owned()
        };
        let refused = hint(StepLearning::AllRefused("none could be learned from".into()));
        assert_eq!(refused, "look at the sampler's reasons, groups/refused/* in the step's metrics");
        let other = hint(StepLearning::NoUpdate("no sample had a reward".into()));
        assert_eq!(other, "look at the `reason` of each sample in the step's trajectories");
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
