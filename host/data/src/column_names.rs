//! The names in a file of the columns that Gavel reads.

use crate::json::{Columns, Json};
use crate::named_keys::named_keys;
use crate::shown::Shown;
use crate::written_forms::named_keys_schema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A column that Gavel reads itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum KnownColumn {
    /// The prompt: a string or messages.
    Prompt,
    /// The response to the prompt.
    Response,
    /// A whole conversation.
    Messages,
    /// The right answer.
    GroundTruth,
    /// Where the row comes from.
    DataSource,
    /// The id of the row.
    Id,
    /// The functions that the prompt offers.
    Tools,
    /// Of two responses to the prompt, the better one.
    Chosen,
    /// The other one.
    Rejected,
    /// By how much the better one is better.
    Margin,
}

/// Maps Gavel's column names to the names in a file, such as `prompt` to `question`. A name with dots, such as
/// `extra_info.answer`, is a field within a column.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(transparent)]
pub struct ColumnNames(
    #[serde(deserialize_with = "named_keys")]
    #[schemars(schema_with = "named_keys_schema::<KnownColumn, String>")]
    BTreeMap<KnownColumn, String>,
);

/// A row lacks a column that is named here.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the row has no column `{}` to read `{name}` from (it has: {})", Shown(.column), Shown(.has))]
pub struct NoColumn {
    name: KnownColumn,
    column: String,
    has: String,
}

impl KnownColumn {
    /// Its name in a row.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Prompt => "prompt",
            Self::Response => "response",
            Self::Messages => "messages",
            Self::GroundTruth => "ground_truth",
            Self::DataSource => "data_source",
            Self::Id => "id",
            Self::Tools => "tools",
            Self::Chosen => "chosen",
            Self::Rejected => "rejected",
            Self::Margin => "margin",
        }
    }
}

impl fmt::Display for KnownColumn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl ColumnNames {
    /// Whether no column is renamed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds the mapped columns to a row under Gavel's names, and replaces columns that have these names already. All
    /// other columns stay.
    ///
    /// # Errors
    /// The row lacks one of them.
    pub fn apply(&self, row: &mut Columns) -> Result<(), NoColumn> {
        let find = |(name, column): (&KnownColumn, &String)| match find(row, column) {
            Some(value) => Ok((*name, value)),
            None => {
                let has = row.names().collect::<Vec<_>>().join(", ");
                Err(NoColumn { name: *name, column: column.clone(), has })
            }
        };
        // Find all before the first insert, since two columns may swap names.
        let found: Vec<_> = self.0.iter().map(find).collect::<Result<_, _>>()?;
        for (name, value) in found {
            if name == KnownColumn::GroundTruth {
                // `reward_model.ground_truth` would be read before the column.
                replace_field(row, "reward_model", name.as_str(), &value);
            }
            row.insert(name.as_str(), value);
        }
        Ok(())
    }
}

impl FromIterator<(KnownColumn, String)> for ColumnNames {
    fn from_iter<I: IntoIterator<Item = (KnownColumn, String)>>(names: I) -> Self {
        Self(names.into_iter().collect())
    }
}

/// A column, or a field in one.
fn find(row: &Columns, name: &str) -> Option<Json> {
    if let Some(value) = row.get(name) {
        return Some(value.clone());
    }
    let (column, field) = name.split_once('.')?;
    find(&row.get(column)?.fields()?, field)
}

/// Sets a field of a column, if the column has that field already.
fn replace_field(row: &mut Columns, column: &str, field: &str, value: &Json) {
    let Some(mut fields) = row.get(column).and_then(Json::fields).filter(|fields| fields.get(field).is_some()) else {
        return;
    };
    fields.insert(field, value.clone());
    row.insert(column, Json::from(fields));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::task::Task;

    fn names(json: &str) -> ColumnNames {
        serde_json::from_str(json).unwrap()
    }

    fn applied(json: &str, row: &str) -> Result<Columns, NoColumn> {
        let mut row = serde_json::from_str(row).unwrap();
        names(json).apply(&mut row)?;
        Ok(row)
    }

    #[test]
    fn columns_are_read_under_other_names_and_stay() {
        let row = applied(
            r#"{"prompt":"question","ground_truth":"extra_info.answer.final","data_source":"from.where"}"#,
            r#"{"question":"2 + 2?","answer":"as text","from.where":"sums","extra_info":{"answer":{"final":4.50}}}"#,
        )
        .unwrap();
        let task = Task::from_row(row.clone(), 0, "train").unwrap();
        assert_eq!((task.prompt[0].text().as_str(), task.data_source.as_deref()), ("2 + 2?", Some("sums")));
        assert_eq!(task.reference.ground_truth.as_deref(), Some("4.50"));
        let columns = ["question", "answer", "from.where", "extra_info", "prompt", "ground_truth", "data_source"];
        assert_eq!(row.names().collect::<Vec<_>>(), columns);
    }

    #[test]
    fn what_is_named_comes_before_what_the_row_has() {
        let verl = r#"{"prompt":"a","messages":"b","final":"7","reward_model":{"style":"rule","ground_truth":"6"}}"#;
        let row = applied(r#"{"prompt":"messages","messages":"prompt","ground_truth":"final"}"#, verl).unwrap();
        assert_eq!((row.get("prompt"), row.get("messages")), (Some(&Json::from("b")), Some(&Json::from("a"))));
        let task = Task::from_row(row, 0, "train").unwrap();
        assert_eq!(task.reference.ground_truth.as_deref(), Some("7"));
        assert_eq!(
            task.reference.columns.get("reward_model").unwrap().as_text(),
            r#"{"style":"rule","ground_truth":"7"}"#
        );
    }

    #[test]
    fn a_column_that_is_not_there_is_named_with_those_that_are() {
        let error = applied(r#"{"prompt":"qestion"}"#, r#"{"question":"x","answer":"y"}"#).unwrap_err().to_string();
        assert_eq!(error, "the row has no column `qestion` to read `prompt` from (it has: question, answer)");
        assert!(applied(r#"{"prompt":"a.b"}"#, r#"{"a":{"c":1}}"#).is_err());
        assert!(applied(r#"{"ground_truth":"a"}"#, r#"{"a":null}"#).is_ok());
        let unknown = serde_json::from_str::<ColumnNames>(r#"{"promt":"a"}"#).unwrap_err().to_string();
        assert!(unknown.contains("unknown field `promt`, expected one of `prompt`, `response`"), "{unknown}");
    }
}
