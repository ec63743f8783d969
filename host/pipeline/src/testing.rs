//! What the tests of this crate share.

use crate::episode_kind::EpisodeKind;
use crate::rows::Prompt;
use gavel_config::RlTable;
use gavel_data::{
    FinishReason, Group, Member, Message, OutcomeKind, Role, Sample, SampleOutcome, Task, Tokens, Trajectory,
};
use std::sync::Arc;

/// A `[train]` table with these keys beside those that must be there.
pub(crate) fn rl_table(text: &str) -> RlTable {
    toml::from_str(&format!("steps = 1\nprompts_per_step = 1\nlearning_rate = 1e-3\n{text}")).unwrap()
}

/// A task, whose prompt is `q`.
fn task() -> Arc<Task> {
    let prompt = vec![Message::new(Role::User, "q")];
    Arc::new(Task { id: "t".into(), data_source: None, prompt, reference: Default::default() })
}

/// A prompt of one token.
pub(crate) fn prompt() -> Prompt {
    Prompt { task: task(), ids: vec![1], episode_kind: EpisodeKind::Single }
}

/// A group whose samples have these outcomes and rewards.
pub(crate) fn group(outcomes: &[(OutcomeKind, Option<f64>)]) -> Group {
    let task = task();
    let member = |(index, &(outcome, reward)): (u32, &(OutcomeKind, Option<f64>))| {
        let tokens = Tokens {
            prompt: vec![1],
            response: vec![5, 2],
            loss_mask: vec![true; 2],
            logprobs: vec![-0.5; 2],
            versions: vec![0; 2],
            masks: Default::default(),
        };
        let trajectory = Trajectory {
            opening: None,
            report: Default::default(),
            messages: vec![Message::new(Role::Assistant, "a")],
            by_agent: Vec::new(),
            tokens: Some(tokens.into()),
            finish_reason: FinishReason::Stop,
            trace: Default::default(),
        };
        let sample = Sample::new(task.clone(), index, vec![trajectory]);
        let outcome = SampleOutcome { reward, reason: None, ..SampleOutcome::without_calls(outcome, "") };
        Member { sample, outcome, advantages: Vec::new() }
    };
    Group { task: task.clone(), members: (0..).zip(outcomes).map(member).collect() }
}
