//! Answers as rows of a dataset, which `gavel score` reads.

use gavel_data::{Columns, Group, Json, Member, Message, Role};
use serde_json::{Map, Value};

/// A row for each sample: the columns of its task, the answer, and the outcome as `gavel score` writes it. `response`
/// is a text, or messages if one of the answers is more than a text.
pub fn generations(groups: &[Group]) -> Vec<Columns> {
    let members = || groups.iter().flat_map(|group| &group.members);
    let texts = members().all(|member| messages(member).iter().all(is_text));
    members().map(|member| generation(member, texts)).collect()
}

fn messages(member: &Member) -> &[Message] {
    member.sample.trajectories.first().map(|trajectory| &trajectory.messages[..]).unwrap_or_default()
}

/// Whether a message of the assistant is only a text.
fn is_text(message: &Message) -> bool {
    *message == Message::new(Role::Assistant, message.text())
}

fn generation(member: &Member, texts: bool) -> Columns {
    let task = &member.sample.task;
    let mut row = task.reference.columns.clone();
    row.insert("id", task.id.as_str());
    row.insert("prompt", json(&task.prompt));
    let response = match messages(member) {
        [] => Value::Null.into(),
        [message] if texts => message.text().as_str().into(),
        messages => json(&messages),
    };
    row.insert("response", response);
    row.insert("sample", json(&member.sample.index));
    if let Some(trajectory) = member.sample.trajectories.first() {
        row.insert("finish_reason", json(&trajectory.finish_reason));
        row.insert("response_length", json(&trajectory.tokens.as_ref().map(|tokens| tokens.counts().response)));
    }
    if let Ok(Value::Object(outcome)) = serde_json::to_value(&member.outcome) {
        let outcome: Map<String, Value> = outcome;
        outcome.into_iter().for_each(|(name, value)| row.insert(name, value));
    }
    row
}

#[expect(clippy::expect_used, reason = "messages, numbers and words have JSON")]
fn json(value: &impl serde::Serialize) -> Json {
    Json::of(value).expect("messages, numbers and words have JSON")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::group;
    use gavel_data::{OutcomeKind, Row, ToolCall};

    #[test]
    fn a_row_is_a_completion_again() {
        let mut group = group(&[(OutcomeKind::Scored, Some(0.1)), (OutcomeKind::Fault, None)]);
        let task = std::sync::Arc::make_mut(&mut group.task);
        task.reference.columns = serde_json::from_str(r#"{"question":"q","answer":4.50,"reward":"mine"}"#).unwrap();
        for member in &mut group.members {
            member.sample.task = group.task.clone();
        }
        let rows = generations(std::slice::from_ref(&group));
        assert_eq!(rows[0].get("answer").unwrap().as_text(), "4.50");
        assert_eq!(
            (rows[0].get("reward").unwrap().as_text(), rows[1].get("reward").unwrap().as_text()),
            ("0.1", "null")
        );
        assert_eq!(rows[0].get("response").unwrap().as_text(), "\"a\"");
        assert_eq!(
            (rows[1].get("outcome").unwrap().as_text(), rows[1].get("sample").unwrap().as_text()),
            ("\"fault\"", "1")
        );
        assert_eq!(rows[0].get("response_length").unwrap().as_text(), "2");
        let completion = |columns: &Columns| {
            let row = Row { position: 7, place: String::new(), columns: columns.clone() };
            gavel_scoring::completion(row, "data").unwrap()
        };
        let sample = completion(&rows[0]);
        assert_eq!((&sample.task.id, &sample.task.prompt), (&group.task.id, &group.task.prompt));
        assert_eq!(sample.trajectories[0].messages, group.members[0].sample.trajectories[0].messages);

        // One answer that is more than a text makes all of them messages.
        let call = ToolCall { id: "c".into(), name: "add".into(), arguments: "{}".into() };
        group.members[1].sample.trajectories[0].messages[0].tool_calls = vec![call];
        let rows = generations(std::slice::from_ref(&group));
        for (row, member) in rows.iter().zip(&group.members) {
            assert_eq!(completion(row).trajectories[0].messages, member.sample.trajectories[0].messages);
        }
    }
}
