//! Draws the rows in order and leaves out those that were solved when they were last drawn, whose groups it refuses.

use gavel_sdk::sampler::{Answer, Request};
use gavel_sdk::{Failure, Info, Sampler};

/// What the state has for a row: solved, or not.
const SOLVED: u8 = b'1';
const UNSOLVED: u8 = b'0';

/// The sampler, with its parameters checked.
struct Unsolved {
    params: Params,
}

/// The keys of `[plugin.{{name}}.params]` in a run's configuration.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Params {
    /// The mean reward from which a group has solved its task.
    solved: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { solved: 1.0 }
    }
}

impl Sampler for Unsolved {
    type Params = Params;

    // Once, before any step; an error stops a run before it starts.
    fn new(params: Params) -> Result<Self, String> {
        if params.solved.is_nan() || params.solved <= 0.0 {
            return Err(format!("`solved` must be above 0, not {}", params.solved));
        }
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    // For the next tasks of a run, and for groups that ended, before they are trained on.
    fn sample(&self, request: &Request) -> Result<Answer, Failure> {
        let mut solved = request.state.clone();
        solved.resize(request.rows() as usize, UNSOLVED);
        let mut answer = Answer::new(Vec::new());
        for group in &request.ended {
            let Some(reward) = group.mean_reward() else { continue };
            let is_solved = reward >= self.params.solved;
            solved[request.row(&group.task) as usize] = if is_solved { SOLVED } else { UNSOLVED };
            if is_solved {
                answer = answer.refuse(group.draw, "solved");
            }
        }
        let rows = unsolved(&solved);
        let row = |number: u64| rows[((request.next_draw + number) % rows.len() as u64) as usize];
        answer.draws = (0..request.wanted.into()).map(|number| request.task(row(number))).collect();
        Ok(answer.state(solved))
    }
}

gavel_sdk::export_sampler!(Unsolved);

/// The rows that are not solved; all rows once there are none.
fn unsolved(solved: &[u8]) -> Vec<u64> {
    let rows: Vec<u64> = (0..).zip(solved).filter(|(_, solved)| **solved != SOLVED).map(|(row, _)| row).collect();
    if rows.is_empty() { (0..solved.len() as u64).collect() } else { rows }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn solved_rows_are_left_out_until_all_are_solved() {
        assert_eq!(unsolved(b"0100"), [0, 2, 3]);
        assert_eq!(unsolved(b"11"), [0, 1]);
    }

    #[test]
    fn a_reward_that_every_group_has_is_refused() {
        assert!(Unsolved::new(Params { solved: 0.0 }).is_err());
    }
}
