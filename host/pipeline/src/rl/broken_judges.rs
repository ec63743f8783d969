//! Warns if responses break their judge, make it abstain, or use up the budgets of their tools more and more often. A
//! dropped sample escapes a negative advantage, and a policy may learn to write such samples.

use crate::metrics::members;
use gavel_config::{OnOutcome, RlTable};
use gavel_data::{CausedBy, Group, Member, OutcomeKind, ToolEnding};
use std::collections::{BTreeMap, VecDeque};

/// How many steps are compared with the same number before them.
const STEPS: usize = 10;
/// The fewest failures for a warning.
const LEAST: u64 = 10;
/// Standard errors by which the later rate must be above the earlier one: 10,000 comparisons give a dozen false
/// warnings.
const STANDARD_ERRORS: f64 = 3.0;

/// What is called for a sample.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Called {
    Reward(String),
    /// The function of a tool.
    Tool(String),
}

/// The calls of a reward or tool, and how many of them a response left without a score.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Calls {
    all: u64,
    broken: u64,
    /// How many of the broken calls abstained.
    abstained: u64,
}

/// How often responses broke each reward, and used up the budgets of each tool, in the last steps.
#[derive(Default)]
pub(crate) struct BrokenJudges(BTreeMap<Called, VecDeque<Calls>>);

impl BrokenJudges {
    /// Adds the samples of a step and gives a warning for each reward or tool
    /// whose rate rises.
    pub(crate) fn add<'a>(&mut self, groups: impl IntoIterator<Item = &'a Group>, table: &RlTable) -> Vec<String> {
        let mut calls: BTreeMap<Called, Calls> = BTreeMap::new();
        for member in members(groups) {
            for (name, evaluation) in &member.outcome.plugins {
                let is_broken = evaluation.caused_by == Some(CausedBy::Response);
                let kind = evaluation.outcome.kind();
                let is_escape = is_broken && is_dropped(table, kind);
                let calls = calls.entry(Called::Reward(name.clone())).or_default();
                calls.all += 1;
                calls.broken += u64::from(is_escape);
                calls.abstained += u64::from(is_escape && kind == OutcomeKind::Abstained);
            }
            let is_without_reward = has_no_reward(member, table);
            for tool_use in member.sample.trajectories.iter().flat_map(|trajectory| &trajectory.report.tool_uses) {
                let Some(name) = &tool_use.name else { continue };
                let calls = calls.entry(Called::Tool(name.clone())).or_default();
                calls.all += 1;
                calls.broken += u64::from(is_without_reward && tool_use.ending == ToolEnding::OutOfBudget);
            }
        }
        let mut warnings = Vec::new();
        for (called, calls) in calls {
            let steps = self.0.entry(called.clone()).or_default();
            steps.push_back(calls);
            if steps.len() < 2 * STEPS {
                continue;
            }
            let sum = |steps: &mut dyn Iterator<Item = &Calls>| {
                steps.fold(Calls::default(), |sum, step| Calls {
                    all: sum.all + step.all,
                    broken: sum.broken + step.broken,
                    abstained: sum.abstained + step.abstained,
                })
            };
            let (before, now) = (sum(&mut steps.iter().take(STEPS)), sum(&mut steps.iter().skip(STEPS)));
            if rises(before, now) {
                warnings.push(warning(&called, before, now));
                // Later steps are compared with the rate of this warning.
                steps.drain(..STEPS);
            } else {
                steps.pop_front();
            }
        }
        warnings
    }
}

fn is_dropped(table: &RlTable, kind: OutcomeKind) -> bool {
    table.on_outcome(kind) == OnOutcome::Drop
}

fn has_no_reward(Member { outcome, .. }: &Member, table: &RlTable) -> bool {
    table.grouping().reward(outcome.reward, outcome.outcome, outcome.lowest_reward).is_none()
}

/// Whether the second rate is above the first: a test of two proportions with a pooled variance (Agresti, "Categorical
/// Data Analysis", 3.1).
fn rises(before: Calls, now: Calls) -> bool {
    let rate = |calls: Calls| calls.broken as f64 / calls.all as f64;
    let pooled = (before.broken + now.broken) as f64 / (before.all + now.all) as f64;
    let error = (pooled * (1.0 - pooled) * (1.0 / before.all as f64 + 1.0 / now.all as f64)).sqrt();
    now.broken >= LEAST && rate(now) - rate(before) > STANDARD_ERRORS * error
}

fn warning(called: &Called, before: Calls, now: Calls) -> String {
    let (what, hint) = match called {
        Called::Reward(name) if 2 * now.abstained > now.broken => (
            format!("responses make the reward `{name}` abstain more often"),
            "read the reasons in trajectories/; if the policy provokes them, set on_outcome = { abstained = \"lowest-if-caused\" }",
        ),
        Called::Reward(name) => (
            format!("responses break the reward `{name}` more often"),
            "with on_outcome = { out-of-budget = \"lowest-if-caused\" }, the default, no response escapes by using up its reward's budget; repair a plugin that has faults",
        ),
        Called::Tool(name) => (
            format!("calls of the tool function `{name}` use up their budgets more often"),
            "with agent.on_tool_failure = { out-of-budget = \"answer\" }, the policy reads the error and its sample is scored",
        ),
    };
    format!(
        "{what}: {} of {} calls in the last {STEPS} steps, {} of {} in the {STEPS} before; a sample that is dropped escapes a negative advantage\nhint: {hint}",
        now.broken, now.all, before.broken, before.all
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{group, rl_table};
    use gavel_data::{Budget, Evaluation, Outcome, Score, ToolUse};

    fn exhausted() -> Outcome {
        Outcome::OutOfBudget { which: Budget::Cpu, what: "2 s".into() }
    }

    /// A step of 100 calls, of which this many failed.
    fn step(broken: usize, caused_by: CausedBy, outcome: &Outcome) -> [Group; 1] {
        let mut group = group(&[(OutcomeKind::Scored, Some(1.0)); 100]);
        for (index, member) in group.members.iter_mut().enumerate() {
            let evaluation = if index < broken {
                Evaluation { caused_by: Some(caused_by), ..Evaluation::without_call(outcome.clone()) }
            } else {
                Evaluation::without_call(Outcome::Scored(Score::default()))
            };
            member.outcome.plugins.insert("math".into(), evaluation);
        }
        [group]
    }

    /// The steps after which there is a warning, and the last one.
    fn warned(table: &str, steps: impl Iterator<Item = (usize, CausedBy)>) -> (Vec<usize>, String) {
        warned_of(&exhausted(), table, steps)
    }

    /// The same where the broken calls have this outcome.
    fn warned_of(
        outcome: &Outcome,
        table: &str,
        steps: impl Iterator<Item = (usize, CausedBy)>,
    ) -> (Vec<usize>, String) {
        let (mut judges, table) = (BrokenJudges::default(), rl_table(table));
        let (mut at, mut last) = (Vec::new(), String::new());
        for (number, (broken, caused_by)) in steps.enumerate() {
            for warning in judges.add(&step(broken, caused_by, outcome), &table) {
                at.push(number + 1);
                last = warning;
            }
        }
        (at, last)
    }

    #[test]
    fn a_rate_that_rises_is_told_once_with_the_line_to_set() {
        let rising = |caused_by| (0..60).map(move |step| (if step < 20 { 1 } else { 5 }, caused_by));
        let dropped = r#"on_outcome = { out-of-budget = "drop" }"#;
        let (at, last) = warned(dropped, rising(CausedBy::Response));
        // 5 more steps at 5 % beside 5 at 1 % are 30 of 1,000 against 10, which is more than 3 standard errors.
        assert_eq!(at, [25], "{last}");
        assert!(last.contains("`math` more often: 30 of 1000 calls in the last 10 steps, 10 of 1000 in the 10 before"));
        assert!(last.contains(r#"on_outcome = { out-of-budget = "lowest-if-caused" }"#));
        // Failures that the plugin caused do not count, nor those that let no sample escape.
        assert_eq!(warned(dropped, rising(CausedBy::Plugin)).0, [0; 0]);
        assert_eq!(warned("", rising(CausedBy::Response)).0, [0; 0]);
    }

    #[test]
    fn abstentions_that_responses_provoke_are_told_by_default() {
        let rising = |caused_by| (0..60).map(move |step| (if step < 20 { 1 } else { 5 }, caused_by));
        let abstained = Outcome::Abstained("no verdict".into());
        let (at, last) = warned_of(&abstained, "", rising(CausedBy::Response));
        assert_eq!(at, [25], "{last}");
        assert!(last.contains("make the reward `math` abstain more often: 30 of 1000 calls"), "{last}");
        assert!(last.contains(r#"on_outcome = { abstained = "lowest-if-caused" }"#), "{last}");
        assert_eq!(warned_of(&abstained, "", rising(CausedBy::Plugin)).0, [0; 0]);
        assert_eq!(warned_of(&abstained, "", rising(CausedBy::Unknown)).0, [0; 0]);
        let lowest = r#"on_outcome = { abstained = "lowest-if-caused" }"#;
        assert_eq!(warned_of(&abstained, lowest, rising(CausedBy::Response)).0, [0; 0]);
    }

    #[test]
    fn tools_whose_budgets_are_used_up_more_often_are_told() {
        let step = |ended: usize, reward: Option<f64>| {
            let mut group = group(&[(OutcomeKind::Scored, Some(1.0)); 100]);
            for (index, member) in group.members.iter_mut().enumerate() {
                let ending = if index < ended { ToolEnding::OutOfBudget } else { ToolEnding::Answered };
                if index < ended {
                    member.outcome.outcome = OutcomeKind::OutOfBudget;
                    member.outcome.reward = reward;
                }
                let tool_use = ToolUse { name: Some("run".into()), ending, turn: 0, seconds: 1.0 };
                member.sample.trajectories[0].report.tool_uses.push(tool_use);
            }
            [group]
        };
        let warned = |reward: Option<f64>| {
            let (mut judges, table) = (BrokenJudges::default(), rl_table(""));
            let steps = (0..60).map(|number| step(if number < 20 { 1 } else { 5 }, reward));
            steps.flat_map(|step| judges.add(&step, &table)).collect::<Vec<_>>()
        };
        let said = warned(None);
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].contains("the tool function `run` use up their budgets more often: 30 of 1000 calls"),
            "{said:?}"
        );
        assert!(said[0].contains(r#"agent.on_tool_failure = { out-of-budget = "answer" }"#), "{said:?}");
        // A sample that is scored escapes nothing.
        assert_eq!(warned(Some(0.0)), [""; 0]);
    }

    #[test]
    fn a_rate_that_stays_or_falls_is_none_of_it() {
        let dropped = r#"on_outcome = { out-of-budget = "drop" }"#;
        assert_eq!(warned(dropped, (0..60).map(|step| (5 + step % 3, CausedBy::Response))).0, [0; 0]);
        assert_eq!(warned(dropped, (0..60).map(|step| (60 - step, CausedBy::Response))).0, [0; 0]);
    }
}
