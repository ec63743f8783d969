//! The turns of samples, as a comparison of turns sees them.

use crate::error::{PipelineError, Result};
use crate::metrics::sample_name;
use crate::rl::credit::CreditRule;
use crate::rl::placed_credit::replies;
use gavel_data::{ContentPart, Group, Member, Message, Role};
use gavel_train::ScoredTurn;

/// The states before the turns of a group's samples. The number of a state is its place.
#[derive(Default)]
pub(crate) struct TurnStates<'a>(Vec<State<'a>>);

/// What the policy read since its turn before, and the speaker that it played.
type State<'a> = (&'a str, Vec<(Role, Option<&'a str>, &'a [ContentPart])>);

impl<'a> TurnStates<'a> {
    /// The turns of a trajectory, each with its credit; nothing if its tokens are not known.
    pub(crate) fn turns(&mut self, member: &'a Member, number: usize, rule: &CreditRule<'_>) -> Vec<ScoredTurn> {
        let Some(trajectory) = member.sample.trajectories.get(number) else { return Vec::new() };
        let replies = trajectory.tokens().and_then(|tokens| replies(trajectory, tokens).ok()).unwrap_or_default();
        let credits = rule.of_messages(member, number);
        let (speaker, prompt) = match &trajectory.opening {
            Some(opening) => (opening.speaker.as_str(), &opening.messages),
            None => ("", &member.sample.task.prompt),
        };
        let turn = |(message, (_, tokens))| {
            let before = prompt.iter().chain(&trajectory.messages[..message as usize]);
            let state = self.number((speaker, observation(before)));
            ScoredTurn { tokens, reward: credits.get(&message).copied().unwrap_or(0.0), state }
        };
        replies.into_iter().map(turn).collect()
    }

    fn number(&mut self, state: State<'a>) -> usize {
        self.0.iter().position(|known| *known == state).unwrap_or_else(|| {
            self.0.push(state);
            self.0.len() - 1
        })
    }
}

/// The last of these messages, back to the assistant's message before them. The ids of calls are left out.
fn observation<'a>(
    before: impl DoubleEndedIterator<Item = &'a Message>,
) -> Vec<(Role, Option<&'a str>, &'a [ContentPart])> {
    let mut has_others = false;
    let is_read = |message: &&Message| {
        has_others |= message.role != Role::Assistant;
        // An agent may write the assistant's last message.
        message.role != Role::Assistant || !has_others
    };
    let read = before.rev().take_while(is_read);
    read.map(|message| (message.role, message.name.as_deref(), &message.content[..])).collect()
}

/// Refuses trajectories whose turns are not known.
///
/// # Errors
/// The sample and its trajectory.
pub(crate) fn check_turns(step: u64, group: &Group) -> Result<()> {
    for member in &group.members {
        for (trajectory, each) in member.sample.trajectories.iter().enumerate() {
            let Some(tokens) = each.tokens() else { continue };
            replies(each, tokens).map_err(|why| {
                let sample = sample_name(&member.sample);
                PipelineError::Turns { step, sample, trajectory, why }
            })?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rl::advantages::advantages_of;
    use crate::samples::DropReason;
    use crate::testing::{group, rl_table};
    use gavel_config::{AgentTable, AgentTables, RewardTo};
    use gavel_data::{Credit, Evaluation, Opening, Outcome, OutcomeKind, Score, Tokens, Trajectory};

    /// A turn: what the policy said, with the credit for it, and what a tool answered.
    type Turn = (&'static str, f64, &'static str);

    fn messages(turns: &[Turn]) -> Vec<Message> {
        let of_turn = |(number, (said, _, answered)): (usize, &Turn)| {
            // The ids of calls differ between samples.
            let answer = Message {
                tool_call_id: Some(format!("{said}-{number}")),
                name: Some("look".into()),
                ..Message::new(Role::Tool, *answered)
            };
            [Message::new(Role::Assistant, *said), answer]
        };
        turns.iter().enumerate().flat_map(of_turn).collect()
    }

    /// Two tokens of the policy for each turn, and one of the tool after each but the last.
    fn tokens(turns: usize) -> Tokens {
        let mut loss_mask = [true, true, false].repeat(turns);
        loss_mask.pop();
        let count = loss_mask.len();
        let (logprobs, versions) = (vec![0.0; count], vec![0; count]);
        Tokens { prompt: vec![1], response: vec![5; count], loss_mask, logprobs, versions, ..Tokens::default() }
    }

    /// The trajectory of a conversation that keeps the policy's tokens.
    fn whole(turns: &[Turn]) -> Trajectory {
        let mut messages = messages(turns);
        messages.pop();
        Trajectory { tokens: Some(tokens(turns.len()).into()), ..Trajectory::of(messages) }
    }

    /// The trajectories of one whose turns each have one.
    fn split(prompt: &[Message], turns: &[Turn]) -> Vec<Trajectory> {
        let all = messages(turns);
        let of_turn = |number: usize| {
            let messages = prompt.iter().chain(&all[..2 * number]).cloned().collect();
            let opening = (number > 0).then(|| Opening { speaker: String::new(), messages });
            let reply = vec![all[2 * number].clone()];
            Trajectory { opening, tokens: Some(tokens(1).into()), ..Trajectory::of(reply) }
        };
        (0..turns.len()).map(of_turn).collect()
    }

    /// Two samples with these turns and rewards, in one trajectory each or split.
    fn samples(samples: [(f64, &[Turn]); 2], is_split: bool) -> Group {
        let outcomes = samples.map(|(reward, _)| (OutcomeKind::Scored, Some(reward)));
        let mut group = group(&outcomes);
        for (member, (_, turns)) in group.members.iter_mut().zip(samples) {
            member.sample.trajectories = match is_split {
                true => split(&member.sample.task.prompt, turns),
                false => vec![whole(turns)],
            };
            let credit = |(number, (_, value, _)): (u32, &Turn)| {
                let (trajectory, message) = if is_split { (number, 0) } else { (0, 2 * number) };
                // A turn has its credit, whichever bytes it is for: a turn may be a call alone.
                Credit { trajectory, message, start: 0, end: 0, value: *value }
            };
            let credits = (0..).zip(turns).map(credit).filter(|credit| credit.value != 0.0);
            give(member, credits.collect());
        }
        group
    }

    fn give(member: &mut Member, credit: Vec<Credit>) {
        let score = Score { credit, ..Score::default() };
        member.outcome.plugins.insert("r".into(), Evaluation::without_call(Outcome::Scored(score)));
    }

    /// The advantage of each turn of each sample.
    fn of_turns(group: &Group, table: &str, rule: &CreditRule<'_>) -> Vec<Vec<f32>> {
        let mut of_samples = vec![Vec::new(); group.members.len()];
        for row in advantages_of(&mut [&mut group.clone()], &rl_table(table), rule).remove(0) {
            let learned = row.advantages.iter().zip(&row.loss_mask).filter(|(_, learned)| **learned);
            let learned: Vec<f32> = learned.map(|(advantage, _)| *advantage).collect();
            let turns = learned.chunks(2).inspect(|turn| assert_eq!(turn[0], turn[1]));
            of_samples[row.sample.index].extend(turns.map(|turn| turn[0]));
        }
        of_samples
    }

    const FOUND: &[Turn] = &[("look", 0.5, "7"), ("7", 0.0, "")];
    const LOST: &[Turn] = &[("search", 0.0, "3"), ("look", 1.0, "7"), ("3", 0.0, "")];
    const BY: [&str; 3] = [
        "algorithm = 'dr_grpo'\nadvantage = { turns = 'index' }",
        "algorithm = 'dr_grpo'\nadvantage = { turns = 'return', gamma = 0.5 }",
        "algorithm = 'dr_grpo'\nadvantage = { turns = 'state', gamma = 0.5, turn_weight = 0.25 }",
    ];

    #[test]
    fn credit_is_the_reward_of_its_turn_however_the_history_is_kept() {
        let rule = CreditRule::plain();
        // The weight of the reward is 2: the turns have the rewards 1 and 0, and 0, 2 and 0.
        let expected: [[&[f32]; 2]; 3] = [
            // Samples ±1; turn 1: 1 and 0; turn 2: 0 and 2; turn 3 is alone.
            [&[1.5, 0.0], &[-1.5, 0.0, -1.0]],
            // Returns 2, 2 and 1, 2, 0: mean 1.4.
            [&[0.6, 0.6], &[-0.4, 0.6, -1.4]],
            // Samples, with all rewards: 3 and 2, ±½. The prompt: 2 and 1. After the answer 7: 2 and 0. After 3: alone.
            [&[0.5 + 0.125, 0.5 + 0.25], &[-0.5 - 0.125, -0.5, -0.5 - 0.25]],
        ];
        for is_split in [false, true] {
            let group = samples([(2.0, FOUND), (0.0, LOST)], is_split);
            assert!(check_turns(1, &group).is_ok());
            for (table, expected) in BY.iter().zip(&expected) {
                let found = of_turns(&group, table, &rule);
                let close = |found: &[f32], expected: &[f32]| {
                    found.len() == expected.len() && found.iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-6)
                };
                let is_it = found.iter().zip(expected).all(|(found, expected)| close(found, expected));
                assert!(is_it, "{table}, split: {is_split}: {found:?} is not {expected:?}");
            }
        }
    }

    #[test]
    fn the_turns_of_several_conversations_are_counted_by_speaker() {
        let mut group = samples([(1.0, FOUND), (0.0, FOUND)], false);
        // The second conversation begins with the same words as the first.
        for (member, credit) in group.members.iter_mut().zip([0.25, 0.5]) {
            let messages = member.sample.task.prompt.clone();
            let opening = Some(Opening { speaker: "critic".into(), messages });
            member.sample.trajectories.push(Trajectory { opening, ..whole(&[("no", 0.0, "")]) });
            give(member, vec![Credit { trajectory: 1, message: 0, start: 0, end: 0, value: credit }]);
        }
        let of = |reward_to: RewardTo, table: &str| {
            let agents = AgentTables::from(AgentTable { reward_to, ..AgentTable::default() });
            of_turns(&group, table, &CreditRule::of_agents(&agents))
        };
        // The third turns of the samples have the rewards ½ and 1, and are the first turns of their speaker.
        let found = [vec![0.5, 0.5, 0.25], vec![-0.5, -0.5, -0.25]];
        assert_eq!(of(RewardTo::All, BY[0]), found);
        assert_eq!(of(RewardTo::ByAgent, BY[0]), found);
        assert_eq!(of(RewardTo::Last, BY[0]), [[0.25], [-0.25]]);
        // Through all conversations, the returns are 0.375, 0.75, 1.5 and 0.25, 0.5, 1, with the mean 0.7291667.
        let all: Vec<Vec<f32>> = of(RewardTo::All, BY[1]);
        assert!((all[0][0] - (0.375 - 0.729_166_7)).abs() < 1e-6, "{all:?}");
        // By speaker, they are 0.5, 1 and 0, 0, and 1.5 and 1.
        assert_eq!(of(RewardTo::ByAgent, BY[1]), [[0.125, 0.625, 0.25], [-0.375, -0.375, -0.25]]);
        // Speakers that read the same are in different states: the critics have the returns 1.5 and 1, samples 1.5 and 1.
        let states = of(RewardTo::All, BY[2]);
        assert_eq!([states[0][2], states[1][2]], [0.25 + 0.0625, -0.25 - 0.0625]);
    }

    #[test]
    fn a_group_teaches_nothing_if_no_turn_has_an_advantage() {
        let rule = CreditRule::plain();
        let of = |group: &Group, table: &str| DropReason::of(group, &rl_table(table), &rule);
        let quick: &[Turn] = &[("7", 0.0, "")];
        let slow: &[Turn] = &[("look", 0.0, "7"), ("7", 0.0, "")];
        let equal = Some(DropReason::EqualRewards);
        let undiscounted = "advantage.turns = 'state'";
        for table in BY.into_iter().chain([undiscounted, ""]) {
            assert_eq!(of(&samples([(1.0, quick), (1.0, quick)], false), table), equal, "{table}");
        }
        // Equal rewards after fewer turns are worth more, if they are discounted.
        let group = samples([(1.0, quick), (1.0, slow)], false);
        assert_eq!(BY.map(|table| of(&group, table)), [equal.clone(), None, None]);
        assert_eq!([of(&group, undiscounted), of(&group, "")], [equal.clone(), equal]);
        let group = samples([(1.0, FOUND), (1.0, slow)], false);
        assert_eq!(BY.map(|table| of(&group, table)), [const { None }; 3]);
    }

    #[test]
    fn the_last_words_of_an_agent_are_a_part_of_the_state() {
        let of = |roles: &[(Role, &'static str)]| {
            let messages: Vec<Message> = roles.iter().map(|(role, text)| Message::new(*role, *text)).collect();
            observation(messages.iter()).len()
        };
        let (user, assistant) = ((Role::User, "u"), (Role::Assistant, "a"));
        assert_eq!(of(&[(Role::System, "s"), user]), 2);
        assert_eq!(of(&[user, assistant, (Role::Tool, "t"), user]), 2);
        assert_eq!(of(&[user, assistant, user, assistant]), 2);
        assert_eq!(of(&[]), 0);
    }

    #[test]
    fn turns_that_cannot_be_told_apart_stop_the_run() {
        let mut group = samples([(1.0, FOUND), (0.0, FOUND)], false);
        group.members[1].sample.trajectories[0].messages.truncate(2);
        let error = check_turns(7, &group).unwrap_err().to_string();
        let expected = "step 7: the turns of trajectory 0 of sample 1 of t are not known: its tokens have 2 turns of the policy, and its messages 1\nhint: ";
        assert!(error.starts_with(expected), "{error}");
        let found = of_turns(&group, BY[0], &CreditRule::plain());
        assert_eq!(found, [[0.5, 0.5], [0.0, 0.0]]);
    }
}
