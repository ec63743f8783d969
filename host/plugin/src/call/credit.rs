//! Credit that a plugin gives to parts of a sample. It is recorded for training,
//! so it must name parts that the policy wrote, with finite values.

use crate::bindings::gavel::plugin::types;
use gavel_data::{Credit, MOST_REWARD, Message, Role, Sample};
use std::collections::HashMap;

/// The most parts with credit: several for each line of the longest response. All of them are recorded.
const MOST: usize = 16_384;

/// The credit of a verdict on `sample`, or the rule that it breaks.
pub(crate) fn credit(given: Vec<types::Credit>, sample: &Sample) -> Result<Vec<Credit>, String> {
    if given.len() > MOST {
        return Err(format!("credit was given to {} parts, more than the {MOST} allowed", given.len()));
    }
    // Texts are kept, since a message may be long and named often.
    let mut texts = HashMap::new();
    let mut checked = Vec::with_capacity(given.len());
    for (number, types::Credit { trajectory, message, start, end, value }) in given.into_iter().enumerate() {
        let wrong = |what: String| Err(format!("credit {number} {what}"));
        let Some(found) = sample.trajectories.get(trajectory as usize) else {
            let count = sample.trajectories.len();
            return wrong(format!("is for trajectory {trajectory}, but the sample has {count}, counted from 0"));
        };
        let (messages, by_agent) = (&found.messages, &found.by_agent);
        let Some(found) = messages.get(message as usize) else {
            let count = messages.len();
            return wrong(format!("is for message {message}, but trajectory {trajectory} has {count}, counted from 0"));
        };
        if found.role != Role::Assistant {
            let role = found.role.as_str();
            return wrong(format!(
                "is for message {message} of trajectory {trajectory}, which has the role `{role}`: the policy did not write it"
            ));
        }
        if by_agent.contains(&message) {
            return wrong(format!(
                "is for message {message} of trajectory {trajectory}, which the agent wrote, and not the policy"
            ));
        }
        let text = texts.entry((trajectory, message)).or_insert_with(|| Message::text(found));
        let range = format!("bytes {start}..{end} of message {message} of trajectory {trajectory}");
        if start > end {
            return wrong(format!("is for {range}, which end before they begin"));
        }
        if end as usize > text.len() {
            return wrong(format!("is for {range}, but its text has {}", text.len()));
        }
        if !text.is_char_boundary(start as usize) || !text.is_char_boundary(end as usize) {
            return wrong(format!("is for {range}, which split a character"));
        }
        // NaN is not in the range either.
        if !(-MOST_REWARD..=MOST_REWARD).contains(&value) {
            return wrong(format!("is {value:e}, which is not from {:e} to {MOST_REWARD:e}", -MOST_REWARD));
        }
        checked.push(Credit { trajectory, message, start, end, value: value + 0.0 });
    }
    Ok(checked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_data::{Task, Trajectory};
    use std::sync::Arc;

    fn sample() -> Sample {
        let said = |text: &str| Message::new(Role::Assistant, text);
        let messages = vec![Message::new(Role::Tool, ""), said("aäb"), said("aäb")];
        let trajectory = Trajectory { by_agent: vec![2], ..Trajectory::of(messages) };
        let task = Arc::new(Task::with_prompt(Default::default(), Vec::new(), 0, "test"));
        Sample::new(task, 0, vec![trajectory])
    }

    fn given(trajectory: u32, message: u32, start: u32, end: u32, value: f64) -> types::Credit {
        types::Credit { trajectory, message, start, end, value }
    }

    #[test]
    fn credit_for_what_is_there_is_kept_in_order() {
        let parts = [given(0, 1, 1, 3, -0.5), given(0, 1, 0, 4, 1e30), given(0, 1, 0, 0, 0.0), given(0, 1, 4, 4, -0.0)];
        let kept = credit(parts.into(), &sample()).unwrap();
        assert_eq!(kept[0], Credit { trajectory: 0, message: 1, start: 1, end: 3, value: -0.5 });
        assert_eq!(kept.len(), 4);
        assert!(kept[3].value.is_sign_positive());
        assert_eq!(credit(vec![given(0, 1, 0, 1, 1.0); MOST], &sample()).unwrap().len(), MOST);
    }

    #[test]
    fn credit_for_anything_else_is_refused() {
        for (part, says) in [
            (given(1, 0, 0, 0, 1.0), "credit 1 is for trajectory 1, but the sample has 1, counted from 0"),
            (given(0, 3, 0, 0, 1.0), "message 3, but trajectory 0 has 3, counted from 0"),
            (
                given(0, 0, 0, 0, 0.0),
                "message 0 of trajectory 0, which has the role `tool`: the policy did not write it",
            ),
            (given(0, 2, 0, 1, 1.0), "message 2 of trajectory 0, which the agent wrote, and not the policy"),
            (given(0, 1, 0, 5, 1.0), "bytes 0..5 of message 1 of trajectory 0, but its text has 4"),
            (given(0, 1, 3, 1, 1.0), "which end before they begin"),
            (given(0, 1, 0, 2, 1.0), "which split a character"),
            (given(0, 1, 2, 4, 1.0), "which split a character"),
            (given(u32::MAX, u32::MAX, u32::MAX, u32::MAX, 1.0), "is for trajectory 4294967295"),
            (given(0, 1, u32::MAX, u32::MAX, 1.0), "but its text has 4"),
            (given(0, 1, 0, 1, f64::NAN), "credit 1 is NaN, which is not from -1e30 to 1e30"),
            (given(0, 1, 0, 1, f64::NEG_INFINITY), "is -inf"),
            (given(0, 1, 0, 1, 1.1e30), "which is not from -1e30 to 1e30"),
        ] {
            let error = credit(vec![given(0, 1, 0, 1, 1.0), part], &sample()).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
        let error = credit(vec![given(0, 1, 0, 1, 1.0); MOST + 1], &sample()).unwrap_err();
        assert_eq!(error, "credit was given to 16385 parts, more than the 16384 allowed");
    }
}
