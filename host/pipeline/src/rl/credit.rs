//! Assigns reward to trajectories and tokens.

use crate::error::{PipelineError, Result};
use crate::metrics::sample_name;
use crate::rl::placed_credit::place;
use gavel_config::{AgentTables, Config, RewardTo, WeighBy};
use gavel_data::{Credit, Group, Member, Metric, NotCalled, Outcome, Sample, Score, Trajectory};
use gavel_text::TextModel;
use gavel_train::RewardPart;
use std::collections::{BTreeMap, BTreeSet};

/// Assigns reward to trajectories and tokens.
pub(crate) struct CreditRule<'a> {
    agents: &'a AgentTables,
    /// The weights of the rewards.
    weights: BTreeMap<&'a str, f64>,
    text: &'a TextModel,
}

/// The trajectories of a group that are compared with each other.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ComparedTrajectories {
    /// All of a sample.
    All,
    /// The last of each sample.
    Last,
    /// The trajectories of a speaker.
    Speaker(String),
}

/// What a reward of the run gave a sample.
pub(crate) struct RewardOfSample<'a> {
    pub(crate) name: &'a str,
    pub(crate) weight: f64,
    pub(crate) score: Option<f64>,
    /// What it counts with in the sample's reward.
    pub(crate) counted: f64,
    pub(crate) metrics: &'a [Metric],
}

impl<'a> CreditRule<'a> {
    pub(crate) fn new<T>(config: &'a Config<T>, text: &'a TextModel) -> Self {
        let weights = config.reward.iter().map(|reward| (reward.name.as_str(), reward.weight)).collect();
        Self { agents: &config.agent, weights, text }
    }

    #[cfg(test)]
    pub(crate) fn plain() -> CreditRule<'static> {
        static TEXT: std::sync::LazyLock<TextModel> = std::sync::LazyLock::new(TextModel::byte_level);
        static ONE: std::sync::LazyLock<AgentTables> = std::sync::LazyLock::new(AgentTables::default);
        CreditRule { agents: &ONE, weights: BTreeMap::from([("r", 2.0)]), text: &TEXT }
    }

    #[cfg(test)]
    pub(crate) fn of_agents(agents: &'a AgentTables) -> Self {
        Self { agents, ..CreditRule::plain() }
    }

    /// Which trajectories of a group are compared with each other.
    pub(crate) fn compared_trajectories(&self, group: &Group) -> Vec<ComparedTrajectories> {
        match self.agents.of(&group.task).reward_to {
            RewardTo::All => vec![ComparedTrajectories::All],
            RewardTo::Last => vec![ComparedTrajectories::Last],
            RewardTo::ByAgent => {
                let trajectories = group.members.iter().flat_map(|member| &member.sample.trajectories);
                let speakers: BTreeSet<&str> = trajectories.map(speaker).collect();
                speakers.into_iter().map(|speaker| ComparedTrajectories::Speaker(speaker.to_owned())).collect()
            }
        }
    }

    /// The reward of a sample among compared trajectories, where `reward` is the reward of the whole sample. A plugin
    /// sets the reward of a speaker with the metric `reward/SPEAKER`. Nothing if the sample has no trajectory of the
    /// speaker.
    pub(crate) fn reward(&self, member: &Member, compared: &ComparedTrajectories, reward: f64) -> Option<f64> {
        let ComparedTrajectories::Speaker(name) = compared else { return Some(reward) };
        member.sample.trajectories.iter().find(|trajectory| speaker(trajectory) == name)?;
        let metric = format!("reward/{name}");
        let own = self.scores(member).filter_map(|(_, weight, score)| {
            let metric = score.metrics.iter().find(|found| found.name == metric)?;
            Some(weight * metric.value)
        });
        Some(own.reduce(|sum, own| sum + own).unwrap_or(reward))
    }

    /// The parts whose weighted sum is the reward of a sample among compared trajectories, in the order of their names.
    /// The reward of a speaker is not divided.
    pub(crate) fn parts(&self, member: &Member, compared: &ComparedTrajectories, reward: f64) -> Vec<RewardPart> {
        if let ComparedTrajectories::Speaker(_) = compared {
            return vec![RewardPart { weight: 1.0, score: reward }];
        }
        let weighted = self.rewards(member, reward).into_iter().filter(|part| part.weight != 0.0);
        weighted.map(|part| RewardPart { weight: part.weight, score: part.counted }).collect()
    }

    /// What each reward of the run gave a sample whose own reward is `reward`, in the order of their names. Rewards with a
    /// weight and without a score share the remainder of `reward`.
    pub(crate) fn rewards<'m>(&'m self, member: &'m Member, reward: f64) -> Vec<RewardOfSample<'m>> {
        let weighted = || self.weights.iter().filter(|(_, weight)| **weight != 0.0);
        let counted = |name: &str| match member.outcome.not_called.get(name) {
            Some(NotCalled::Gate | NotCalled::DataSource) => Some(0.0),
            _ => member.outcome.plugins.get(name)?.outcome.score(),
        };
        let known: f64 = weighted().filter_map(|(name, weight)| Some(weight * counted(name)?)).sum();
        let missing: f64 = weighted().filter(|(name, _)| counted(name).is_none()).map(|(_, weight)| *weight).sum();
        let rest = if missing == 0.0 { 0.0 } else { (reward - known) / missing };
        let of_reward = |(name, weight): (&&'m str, &f64)| {
            let score = match member.outcome.plugins.get(*name).map(|evaluation| &evaluation.outcome) {
                Some(Outcome::Scored(score)) => Some(score),
                _ => None,
            };
            let unknown = if *weight == 0.0 { 0.0 } else { rest };
            RewardOfSample {
                name,
                weight: *weight,
                score: score.map(|score| score.value),
                counted: counted(name).unwrap_or(unknown),
                metrics: score.map(|score| &score.metrics[..]).unwrap_or_default(),
            }
        };
        self.weights.iter().map(of_reward).collect()
    }

    /// The compared trajectories of a sample, with their numbers.
    pub(crate) fn trajectories<'s>(
        &self,
        sample: &'s Sample,
        compared: &ComparedTrajectories,
    ) -> Vec<(usize, &'s Trajectory)> {
        let all = sample.trajectories.iter().enumerate();
        match compared {
            ComparedTrajectories::All => all.collect(),
            ComparedTrajectories::Last => all.rev().take(1).collect(),
            ComparedTrajectories::Speaker(name) => all.filter(|(_, trajectory)| speaker(trajectory) == name).collect(),
        }
    }

    /// What counts once when losses are averaged over samples of a group.
    pub(crate) fn weigh_by(&self, group: &Group) -> WeighBy {
        self.agents.of(&group.task).weigh_by
    }

    /// Whether a reward gave credit to a part of a sample of the group.
    pub(crate) fn has_credit(&self, group: &Group) -> bool {
        let credit = |member| self.scores(member).any(|(_, weight, score)| weight != 0.0 && !score.credit.is_empty());
        group.members.iter().any(credit)
    }

    /// Refuses credit that has no tokens.
    ///
    /// # Errors
    /// Which reward gave it, for which message, and why it has no tokens.
    pub(crate) fn check(&self, step: u64, group: &Group) -> Result<()> {
        for member in &group.members {
            for (reward, weight, score) in self.scores(member) {
                for (number, trajectory) in member.sample.trajectories.iter().enumerate() {
                    let Some(tokens) = trajectory.tokens() else { continue };
                    let credits = weighted(weight, score, number);
                    place(&credits, trajectory, tokens, self.text).map_err(|(message, why)| {
                        let (reward, sample) = (reward.to_owned(), sample_name(&member.sample));
                        PipelineError::Credit { step, reward, sample, trajectory: number, message, why }
                    })?;
                }
            }
        }
        Ok(())
    }

    /// The credit of each response token of a trajectory, which is added to its advantage; nothing if no reward gave
    /// any. A token gets the credit of the parts that its bytes overlap, times the weight of the reward. Credit that
    /// [`check`](Self::check) refuses counts for no token.
    pub(crate) fn of_tokens(&self, member: &Member, number: usize) -> Option<Vec<f64>> {
        let credits: Vec<Credit> =
            self.scores(member).flat_map(|(_, weight, score)| weighted(weight, score, number)).collect();
        let trajectory = member.sample.trajectories.get(number).filter(|_| !credits.is_empty())?;
        place(&credits, trajectory, trajectory.tokens()?, self.text).ok()
    }

    /// The sum of the credit of each message of a trajectory that has any, times the weights of the rewards.
    pub(crate) fn of_messages(&self, member: &Member, number: usize) -> BTreeMap<u32, f64> {
        let mut credits = BTreeMap::new();
        for credit in self.scores(member).flat_map(|(_, weight, score)| weighted(weight, score, number)) {
            *credits.entry(credit.message).or_default() += credit.value;
        }
        credits
    }

    /// The scores that rewards of the run gave, with the names and weights of the rewards.
    fn scores<'m>(&'m self, member: &'m Member) -> impl Iterator<Item = (&'m str, f64, &'m Score)> {
        member.outcome.plugins.iter().filter_map(|(name, evaluation)| match &evaluation.outcome {
            Outcome::Scored(score) => Some((name.as_str(), *self.weights.get(name.as_str())?, score)),
            _ => None,
        })
    }
}

/// The credit of a score for a trajectory, times the weight of the reward.
fn weighted(weight: f64, score: &Score, trajectory: usize) -> Vec<Credit> {
    let own = score.credit.iter().filter(|credit| credit.trajectory as usize == trajectory);
    let weighted = own.map(|credit| Credit { value: weight * credit.value, ..*credit });
    weighted.filter(|credit| credit.value != 0.0).collect()
}

fn speaker(trajectory: &Trajectory) -> &str {
    trajectory.opening.as_ref().map_or("", |opening| &opening.speaker)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rl::advantages::advantages_of;
    use crate::samples::DropReason;
    use crate::testing::{group, rl_table};
    use gavel_config::AgentTable;
    use gavel_data::{Evaluation, Message, Opening, OutcomeKind, Role, Tokens};

    /// A trajectory of these turns of a policy that has bytes as tokens, with a token of somebody else after each.
    fn trajectory(speaker: &str, turns: &[(&str, Message)]) -> Trajectory {
        let text = TextModel::byte_level();
        let mut tokens = Tokens { prompt: vec![1], ..Tokens::default() };
        let mut messages = Vec::new();
        for (written, message) in turns {
            let ids = text.tokenizer.encode(written).unwrap();
            tokens.loss_mask.extend(ids.iter().map(|_| true).chain([false]));
            tokens.response.extend(ids.into_iter().chain([1]));
            messages.extend([message.clone(), Message::new(Role::User, "Go on.")]);
        }
        tokens.logprobs = vec![0.0; tokens.response.len()];
        tokens.versions = vec![0; tokens.response.len()];
        let opening = (!speaker.is_empty()).then(|| Opening { speaker: speaker.into(), messages: Vec::new() });
        Trajectory { opening, messages, tokens: Some(tokens.into()), ..Trajectory::of(Vec::new()) }
    }

    fn said(text: &str) -> Message {
        Message::new(Role::Assistant, text)
    }

    fn scored(member: &mut Member, score: Score) {
        member.outcome.plugins.insert("r".into(), Evaluation::without_call(Outcome::Scored(score)));
    }

    fn two() -> Group {
        group(&[(OutcomeKind::Scored, Some(1.0)), (OutcomeKind::Scored, Some(0.0))])
    }

    #[test]
    fn credit_reaches_the_tokens_of_its_bytes() {
        let turns = [("<think>aé</think>aé!", said("<think>aé</think>aé!")), ("bye", said("bye"))];
        let at = turns[0].0.find("</think>").unwrap() + "</think>".len();
        let mut group = two();
        let member = &mut group.members[0];
        member.sample.trajectories = vec![trajectory("", &[("x", said("x"))]), trajectory("", &turns)];
        let credit = |message, start, end, value| Credit { trajectory: 1, message, start, end, value };
        let after = |start, end, value| credit(0, at as u32 + start, at as u32 + end, value);
        let credit = vec![after(1, 3, 0.5), after(0, 4, 0.25), credit(2, 2, 3, -1.0)];
        scored(member, Score { credit, ..Score::default() });
        let rule = CreditRule::plain();
        assert_eq!(rule.of_tokens(member, 0), None);
        let found = rule.of_tokens(member, 1).unwrap();
        // Each byte is a token, and the weight of the reward is 2.
        assert_eq!(found[at..at + 4], [0.5, 1.5, 1.5, 0.5]);
        let second = turns[0].0.len() + 1;
        assert_eq!(found[second..], [0.0, 0.0, -2.0, 0.0]);
        assert_eq!(found.iter().filter(|credit| **credit != 0.0).count(), 5);
        assert!(rule.check(1, &group).is_ok());

        let learned = advantages_of(&mut [&mut group], &rl_table(""), &rule);
        let (plain, credited) = (&learned[0][0].advantages, &learned[0][1].advantages);
        assert_eq!(credited[at], plain[0] + 0.5);
        assert_eq!(credited[0], plain[0]);
    }

    #[test]
    fn credit_without_tokens_is_refused() {
        let rule = CreditRule::plain();
        let refused = |turns: &[(&str, Message)], by_agent: &[u32]| {
            let mut group = two();
            let by_agent = by_agent.to_vec();
            group.members[1].sample.trajectories = vec![Trajectory { by_agent, ..trajectory("", turns) }];
            let credit = vec![Credit { trajectory: 0, message: 0, start: 0, end: 1, value: 0.5 }];
            scored(&mut group.members[1], Score { credit, ..Score::default() });
            assert_eq!(rule.of_tokens(&group.members[1], 0), None);
            rule.check(7, &group).unwrap_err().to_string()
        };
        let place =
            "step 7: the reward `r` gave credit to message 0 of trajectory 0 of sample 1 of t, which has no tokens:";
        let error = refused(&[("ab", said("ba"))], &[]);
        assert!(error.starts_with(&format!("{place} its tokens are not read as this message\nhint: ")), "{error}");
        let error = refused(&[("ab", said("ab"))], &[0]);
        assert!(
            error.starts_with(&format!("{place} its tokens have 1 turns of the policy, and its messages 0")),
            "{error}"
        );
    }

    #[test]
    fn a_group_of_equal_rewards_is_worth_its_credit() {
        let mut group = group(&[(OutcomeKind::Scored, Some(1.0)), (OutcomeKind::Scored, Some(1.0))]);
        let (table, rule) = (rl_table(""), CreditRule::plain());
        assert_eq!(DropReason::of(&group, &table, &rule), Some(DropReason::EqualRewards));
        let credit = vec![Credit { trajectory: 0, message: 0, start: 0, end: 1, value: 0.5 }];
        scored(&mut group.members[0], Score { credit, ..Score::default() });
        assert_eq!(DropReason::of(&group, &table, &rule), None);
    }

    #[test]
    fn the_reward_reaches_the_trajectories_that_it_is_for() {
        let mut group = two();
        let speakers = ["a", "b", "b"];
        for member in &mut group.members {
            member.sample.trajectories = speakers.map(|name| trajectory(name, &[("x", said("x"))])).to_vec();
        }
        // The second sample has the better `b`.
        for (member, b) in group.members.iter_mut().zip([0.0, 3.0]) {
            let metrics = vec![Metric { name: "reward/b".into(), value: b }];
            scored(member, Score { metrics, ..Score::default() });
        }
        let of_agent = |reward_to| AgentTables::from(AgentTable { reward_to, ..AgentTable::default() });
        let signs = |reward_to: RewardTo| {
            let agents = of_agent(reward_to);
            let rule = CreditRule::of_agents(&agents);
            let learned = advantages_of(&mut [&mut group.clone()], &rl_table(""), &rule).remove(0);
            let sign =
                |experience: &gavel_train::Experience| (experience.sample.index, experience.advantages[0].signum());
            learned.iter().map(sign).collect::<Vec<_>>()
        };
        assert_eq!(signs(RewardTo::All), [(0, 1.0), (0, 1.0), (0, 1.0), (1, -1.0), (1, -1.0), (1, -1.0)]);
        assert_eq!(signs(RewardTo::Last), [(0, 1.0), (1, -1.0)]);
        assert_eq!(signs(RewardTo::ByAgent), [(0, 1.0), (1, -1.0), (0, -1.0), (0, -1.0), (1, 1.0), (1, 1.0)]);
        // The line of a trajectory has its own advantage, and so have the metrics.
        let recorded = |reward_to: RewardTo| {
            let (mut group, agents) = (group.clone(), of_agent(reward_to));
            let rule = CreditRule::of_agents(&agents);
            let table = rl_table("algorithm = 'dr_grpo'");
            advantages_of(&mut [&mut group], &table, &rule);
            let mut metrics = gavel_runs::Metrics::default();
            crate::metrics::describe_step(&[&group], 8, &mut metrics);
            let bounds = ["min", "max"].map(|name| metrics.get(&format!("advantage/{name}")).unwrap());
            (group.members.into_iter().map(|member| member.advantages).collect::<Vec<_>>(), bounds)
        };
        let (half, three) = (Some(0.5), Some(3.0));
        assert_eq!(recorded(RewardTo::All), (vec![vec![half; 3], vec![Some(-0.5); 3]], [-0.5, 0.5]));
        assert_eq!(recorded(RewardTo::Last), (vec![vec![None, None, half], vec![None, None, Some(-0.5)]], [-0.5, 0.5]));
        assert_eq!(
            recorded(RewardTo::ByAgent),
            (vec![vec![half, Some(-3.0), Some(-3.0)], vec![Some(-0.5), three, three]], [-3.0, 3.0])
        );
    }
}
