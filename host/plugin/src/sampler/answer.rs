//! Checks what a sampler returned.

use crate::bindings::exports::gavel::plugin::sampler::{Answer, Refusal, Request, Task};
use crate::call::verdict::{NAME_BYTES, cut, is_name};
use crate::decision::check_state;
use std::collections::BTreeSet;

/// The rule that an answer to `request` breaks: too many or too few tasks, a row that does not exist, or a group that
/// was not asked about.
pub(super) fn check(answer: &Answer, request: &Request) -> Result<(), String> {
    let Answer { draws, refusals, state } = answer;
    check_state(state)?;
    if draws.len() != request.wanted as usize {
        return Err(format!("{} tasks were drawn, and {} are wanted", draws.len(), request.wanted));
    }
    for (number, task) in draws.iter().enumerate() {
        check_task(task, request).map_err(|what| format!("task {number} is {what}"))?;
    }
    let mut refused = BTreeSet::new();
    for Refusal { draw, reason } in refusals {
        if !request.ended.iter().any(|group| group.draw == *draw) {
            return Err(format!("the group of draw {draw} is refused, but it did not end since the last call"));
        }
        if !refused.insert(draw) {
            return Err(format!("the group of draw {draw} is refused twice"));
        }
        if !is_name(reason) {
            return Err(format!(
                "the reason to refuse the group of draw {draw} is not 1 to {NAME_BYTES} letters, digits or one of _ . / -: {:?}",
                cut(reason.clone())
            ));
        }
    }
    Ok(())
}

/// The end of the message, after the number of the task.
fn check_task(Task { dataset, row }: &Task, request: &Request) -> Result<(), String> {
    match request.datasets.get(*dataset as usize) {
        None => Err(format!("of dataset {dataset}, and there are {} datasets", request.datasets.len())),
        Some(found) if *row >= found.rows => {
            Err(format!("row {row} of dataset {dataset}, which has {} rows", found.rows))
        }
        Some(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bindings::exports::gavel::plugin::sampler::{Dataset, EndedGroup};
    use crate::decision::MOST_STATE;

    /// A request for two tasks of two datasets, after the groups of the draws 3 and 5 ended.
    fn request() -> Request {
        let ended = |draw| EndedGroup {
            draw,
            task: Task { dataset: 0, row: 0 },
            task_id: "t".into(),
            data_source: None,
            version: 0,
            samples: Vec::new(),
            dropped: None,
        };
        let dataset = |rows| Dataset { rows, weight: None };
        Request {
            step: 1,
            seed: 7,
            datasets: vec![dataset(1), dataset(4)],
            ended: vec![ended(3), ended(5)],
            wanted: 2,
            next_draw: 6,
            state: Vec::new(),
        }
    }

    fn checked(draws: &[(u32, u64)], refusals: &[(u64, &str)], state: usize) -> Result<(), String> {
        let task = |&(dataset, row): &(u32, u64)| Task { dataset, row };
        let refusal = |&(draw, reason): &(u64, &str)| Refusal { draw, reason: reason.into() };
        let answer = Answer {
            draws: draws.iter().map(task).collect(),
            refusals: refusals.iter().map(refusal).collect(),
            state: vec![0; state],
        };
        check(&answer, &request())
    }

    const DRAWS: [(u32, u64); 2] = [(0, 0), (1, 3)];

    #[test]
    fn whole_answers_are_taken() {
        assert_eq!(checked(&DRAWS, &[(5, "a/b-1_.x"), (3, "too-hard")], MOST_STATE), Ok(()));
        assert_eq!(checked(&[(1, 2); 2], &[], 0), Ok(()));
    }

    #[test]
    fn other_lengths_and_unknown_rows_are_named() {
        let wrong = |draws: &[(u32, u64)]| checked(draws, &[], 0).unwrap_err();
        assert_eq!(wrong(&DRAWS[..1]), "1 tasks were drawn, and 2 are wanted");
        assert_eq!(wrong(&[(0, 0); 3]), "3 tasks were drawn, and 2 are wanted");
        assert_eq!(wrong(&[(1, 3), (0, 1)]), "task 1 is row 1 of dataset 0, which has 1 rows");
        assert_eq!(wrong(&[(2, 0), (0, 0)]), "task 0 is of dataset 2, and there are 2 datasets");
        let grown = checked(&DRAWS, &[], MOST_STATE + 1).unwrap_err();
        assert_eq!(grown, "the state has 1048577 bytes, more than the 1048576 allowed");
    }

    #[test]
    fn a_refusal_is_of_a_group_that_ended_and_has_a_short_reason() {
        let wrong = |refusals: &[(u64, &str)]| checked(&DRAWS, refusals, 0).unwrap_err();
        assert_eq!(wrong(&[(4, "a")]), "the group of draw 4 is refused, but it did not end since the last call");
        assert_eq!(wrong(&[(3, "a"), (3, "b")]), "the group of draw 3 is refused twice");
        for reason in ["", "too hard", &"x".repeat(65)] {
            let says = "the reason to refuse the group of draw 3 is not 1 to 64 letters, digits or one of _ . / -: ";
            assert!(wrong(&[(3, reason)]).starts_with(says), "{reason}");
        }
    }
}
