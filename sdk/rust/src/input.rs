//! Helpers for a plugin's input.

use crate::bindings::gavel::plugin::{
    references::Reference,
    samples::{Sample, Trajectory},
    types::{ContentPart, Failure, Message, Role},
};
use serde::de::DeserializeOwned;

impl Message {
    /// A message with this text.
    pub fn new(role: Role, text: impl Into<String>) -> Self {
        let content = vec![ContentPart::Text(text.into())];
        Self { role, content, tool_calls: Vec::new(), tool_call_id: None, name: None }
    }

    /// A message of the role `system`.
    pub fn system(text: impl Into<String>) -> Self {
        Self::new(Role::System, text)
    }

    /// A message of the role `user`.
    pub fn user(text: impl Into<String>) -> Self {
        Self::new(Role::User, text)
    }

    /// The texts of the message, joined.
    pub fn text(&self) -> String {
        self.content
            .iter()
            .filter_map(|part| match part {
                ContentPart::Text(text) => Some(text.as_str()),
                ContentPart::Media(_) => None,
            })
            .collect()
    }
}

impl Trajectory {
    /// The messages after the prompt. Each is read from the host when the
    /// iterator reaches it.
    pub fn messages(&self) -> impl Iterator<Item = Message> + '_ {
        (0..self.message_count()).map_while(|index| self.message(index))
    }

    /// The state in which the tool `name` of the run ended, read into `T`; `None` if it reported none, or the policy
    /// did not call it.
    ///
    /// # Errors
    /// [`Failure::InvalidInput`] if the state cannot be read into `T`. It names the field.
    pub fn read_state<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Failure> {
        self.state(name).map_or(Ok(None), |json| parse("state", name, &json))
    }
}

impl Sample {
    /// The conversations of this attempt; most samples have one.
    pub fn trajectories(&self) -> impl Iterator<Item = Trajectory> + '_ {
        (0..self.trajectory_count()).map_while(|index| self.trajectory(index))
    }

    /// The object that the agent returned beside its answer, read into `T`; `None` if there is none.
    ///
    /// # Errors
    /// [`Failure::InvalidInput`] if the object cannot be read into `T`. It names the field.
    pub fn read_extra<T: DeserializeOwned>(&self) -> Result<Option<T>, Failure> {
        self.extra().map_or(Ok(None), |json| parse("agent's", "extra", &json))
    }
}

impl Reference {
    /// The ground truth.
    ///
    /// # Errors
    /// [`Failure::InvalidInput`] if the row has none.
    pub fn require_ground_truth(&self) -> Result<String, Failure> {
        self.ground_truth().ok_or_else(|| {
            Failure::invalid_input(
                "the row has no ground truth: expected `reward_model.ground_truth`, `ground_truth`, `answer` or `solution`",
            )
        })
    }

    /// The column `name` read into `T`; `None` if the row does not have it or
    /// it is null.
    ///
    /// # Errors
    /// [`Failure::InvalidInput`] if the value cannot be read into `T`. It names
    /// the column and the field.
    pub fn get<T: DeserializeOwned>(&self, name: &str) -> Result<Option<T>, Failure> {
        self.column(name).map_or(Ok(None), |json| parse("column", name, &json))
    }

    /// The column `name` read into `T`.
    ///
    /// # Errors
    /// [`Failure::InvalidInput`] if the row does not have it, it is null, or it
    /// cannot be read into `T`. The message lists the row's columns.
    pub fn require<T: DeserializeOwned>(&self, name: &str) -> Result<T, Failure> {
        self.get(name)?.ok_or_else(|| {
            let columns = self.column_names().join(", ");
            Failure::invalid_input(format!("the row has no value in the column `{name}` (its columns: {columns})"))
        })
    }
}

/// Reads the JSON of `name`, which is a thing of this `kind`.
fn parse<T: DeserializeOwned>(kind: &str, name: &str, json: &str) -> Result<Option<T>, Failure> {
    let mut json = serde_json::Deserializer::from_str(json);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let path = error.path().to_string();
        let place = if path == "." { name.to_owned() } else { format!("{name}.{path}") };
        Failure::invalid_input(format!("{kind} `{place}`: {}", error.inner()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(serde::Deserialize, Debug, PartialEq)]
    struct Extra {
        index: u32,
    }

    #[test]
    fn a_column_is_read_by_type() {
        assert_eq!(parse("column", "extra_info", r#"{"index":7}"#).unwrap(), Some(Extra { index: 7 }));
        assert_eq!(parse::<Extra>("column", "extra_info", "null").unwrap(), None);
    }

    #[test]
    fn a_wrong_type_names_the_column_and_the_field() {
        let Err(Failure::InvalidInput(what)) = parse::<Extra>("column", "extra_info", r#"{"index":"x"}"#) else {
            panic!("a string was read as a number");
        };
        assert!(what.starts_with("column `extra_info.index`: invalid type: string"), "{what}");
        let Err(Failure::InvalidInput(what)) = parse::<u32>("column", "level", "true") else {
            panic!("a boolean was read as a number");
        };
        assert!(what.starts_with("column `level`: invalid type: boolean"), "{what}");
    }

    #[test]
    fn the_text_of_a_message_joins_its_parts() {
        let content = vec![ContentPart::Text("a".into()), ContentPart::Text("b".into())];
        let message = Message { role: Role::User, content, tool_calls: vec![], tool_call_id: None, name: None };
        assert_eq!(message.text(), "ab");
    }
}
