//! The datasets of `train` and `validation`: one or several, with what is set for each.

use crate::dataset::Dataset;
use crate::error::ConfigError;
use gavel_data::ColumnNames;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::ser::SerializeSeq;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Datasets as `[data]` names them: a path, a table, or a list of these.
#[derive(Debug, Clone, Default, PartialEq, schemars::JsonSchema)]
pub struct Datasets(#[schemars(with = "DatasetsForm")] pub Vec<DatasetTable>);

/// Datasets as they are written.
#[derive(schemars::JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum DatasetsForm {
    One(DatasetForm),
    List(Vec<DatasetForm>),
}

#[derive(schemars::JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum DatasetForm {
    Path(String),
    Table(DatasetTable),
}

/// A dataset, and what is set for it alone.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DatasetTable {
    /// A file, a folder, a pattern, or a taskset.
    pub path: Dataset,
    /// Its share of the draws, relative to the other weights. Datasets without weights are drawn from as one dataset.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<f64>,
    /// The data source of its rows that have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub data_source: Option<String>,
    /// The names of its columns; by default the names in `[data.columns]`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub columns: Option<ColumnNames>,
}

impl From<Dataset> for DatasetTable {
    fn from(path: Dataset) -> Self {
        Self { path, weight: None, data_source: None, columns: None }
    }
}

impl From<Dataset> for Datasets {
    fn from(dataset: Dataset) -> Self {
        Self(vec![dataset.into()])
    }
}

impl DatasetTable {
    /// The path alone, where nothing else is set.
    fn bare(&self) -> Option<&Dataset> {
        (*self == Self::from(self.path.clone())).then_some(&self.path)
    }

    /// Refuses values out of range; `table` is the place of the dataset in `key`.
    fn validate(&self, key: &str, table: &str) -> Result<(), ConfigError> {
        if self.weight.is_some_and(|weight| !(weight.is_finite() && weight > 0.0)) {
            let found = self.weight.unwrap_or_default();
            let what = format!("{key}: weight must be a number above 0, not {found}");
            return Err(ConfigError::invalid(format!("{table}.weight"), what));
        }
        if self.data_source.as_deref() == Some("") {
            let what = format!("{key}: data_source must be a name, not \"\"");
            return Err(ConfigError::invalid(format!("{table}.data_source"), what));
        }
        self.path.validate(key, table)
    }
}

impl Datasets {
    /// Refuses datasets that cannot be drawn from, for `data.train`.
    pub(super) fn validate(&self, key: &str) -> Result<(), ConfigError> {
        if self.0.is_empty() {
            return Err(ConfigError::invalid(key, format!("{key} names no dataset")));
        }
        let weighted = self.0.iter().filter(|dataset| dataset.weight.is_some()).count();
        if weighted != 0 && weighted != self.0.len() {
            let what = format!(
                "{weighted} of {} datasets have a weight\nhint: give every dataset a weight, its share of the draws, or none; without weights, all of them are drawn from as one dataset",
                self.0.len()
            );
            return Err(ConfigError::of(key, what));
        }
        match self.0.as_slice() {
            [dataset] => dataset.validate(key, key),
            list => {
                list.iter().enumerate().try_for_each(|(at, dataset)| dataset.validate(key, &format!("{key}[{at}]")))
            }
        }
    }

    /// The same for `data.validation`, which needs no weights: every row is used.
    pub(super) fn validate_without_weights(&self, key: &str) -> Result<(), ConfigError> {
        match self.0.iter().any(|dataset| dataset.weight.is_some()) {
            true => Err(ConfigError::of(
                key,
                "a weight is for data.train; in validation every row is answered\nhint: leave it out",
            )),
            false => self.validate(key),
        }
    }

    /// Replaces names of datasets on the hub by their local files.
    pub(super) fn find_on_hub(&mut self) -> Result<(), ConfigError> {
        for table in &mut self.0 {
            if let Dataset::File(path) = &mut table.path {
                *path = gavel_hub::dataset(path)?.into_owned();
            }
        }
        Ok(())
    }
}

impl fmt::Display for Datasets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, dataset) in self.0.iter().enumerate() {
            let separator = if at == 0 { "" } else { ", " };
            write!(f, "{separator}{}", dataset.path)?;
        }
        Ok(())
    }
}

/// A dataset as it is written.
struct Written<'a>(&'a DatasetTable);

impl Serialize for Written<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.bare() {
            Some(dataset) => dataset.serialize(serializer),
            None => self.0.serialize(serializer),
        }
    }
}

/// As it was written: a run that names one path has one path in its `config.toml`.
impl Serialize for Datasets {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let [dataset] = &self.0[..] {
            return Written(dataset).serialize(serializer);
        }
        let mut list = serializer.serialize_seq(Some(self.0.len()))?;
        for dataset in &self.0 {
            list.serialize_element(&Written(dataset))?;
        }
        list.end()
    }
}

impl<'de> Deserialize<'de> for Datasets {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;

        impl<'de> Visitor<'de> for Forms {
            type Value = Datasets;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a path, a table such as { path = \"a.jsonl\", weight = 2 }, or a list of these")
            }

            fn visit_str<E: Error>(self, text: &str) -> Result<Datasets, E> {
                Ok(text.parse::<Dataset>().map_err(E::custom)?.into())
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Datasets, A::Error> {
                Ok(Datasets(vec![DatasetTable::deserialize(MapAccessDeserializer::new(map))?]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Datasets, A::Error> {
                let each = Vec::<Datasets>::deserialize(SeqAccessDeserializer::new(list))?;
                if each.iter().any(|datasets| datasets.0.len() != 1) {
                    return Err(A::Error::custom("a list of datasets cannot have a list in it"));
                }
                Ok(Datasets(each.into_iter().flat_map(|datasets| datasets.0).collect()))
            }
        }

        deserializer.deserialize_any(Forms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::Table;

    fn datasets(written: &str) -> Result<Datasets, String> {
        let table: Table = format!("train = {written}").parse().unwrap();
        table["train"].clone().try_into().map_err(|error: toml::de::Error| error.message().to_owned())
    }

    fn wrong(written: &str) -> String {
        match datasets(written) {
            Ok(datasets) => datasets.validate("data.train").unwrap_err().to_string(),
            Err(what) => what,
        }
    }

    #[test]
    fn datasets_are_written_down_as_they_were_written() {
        for written in [
            "\"a.jsonl\"",
            "\"plugin:sums?digits=3\"",
            "{ path = \"a/*.parquet\", weight = 2.5 }",
            "[\"a.jsonl\", { path = \"b\", data_source = \"sums\", columns = { prompt = \"question\" } }]",
        ] {
            let read = datasets(written).unwrap();
            let again = toml::Value::try_from(&read).unwrap();
            assert_eq!(format!("train = {again}").parse::<Table>(), format!("train = {written}").parse::<Table>());
            assert_eq!(read.validate("data.train").map_err(|error| error.to_string()), Ok(()), "{written}");
        }
        assert_eq!(datasets("[\"a\", \"b\"]").unwrap().to_string(), "a, b");
        // A list of one dataset is the same as the dataset.
        assert_eq!(datasets("[\"a\"]"), datasets("\"a\""));
    }

    #[test]
    fn what_is_wrong_is_named() {
        for (written, says) in [
            ("3", "expected a path, a table such as { path"),
            ("[]", "data.train names no dataset"),
            ("[[\"a\", \"b\"]]", "cannot have a list in it"),
            ("{ weight = 2 }", "missing field `path`"),
            ("{ path = \"a\", wieght = 2 }", "unknown field `wieght`"),
            ("{ path = \"a\", weight = 0 }", "data.train: weight must be a number above 0, not 0"),
            ("{ path = \"a\", weight = inf }", "data.train: weight must be a number above 0, not inf"),
            ("{ path = \"a\", columns = { promt = \"b\" } }", "unknown field `promt`, expected one of `prompt`"),
            (
                "[\"a\", { path = \"b\", weight = 2 }]",
                "1 of 2 datasets have a weight\nhint: give every dataset a weight",
            ),
            ("\"plugin:a?rows=0\"", "data.train: rows must be more than 0"),
        ] {
            assert!(wrong(written).contains(says), "{written}: {}", wrong(written));
        }
        let weighted = datasets("{ path = \"a\", weight = 2 }").unwrap();
        let error = weighted.validate_without_weights("data.validation").unwrap_err().to_string();
        assert!(error.contains("data.validation: a weight is for data.train"), "{error}");
    }
}
