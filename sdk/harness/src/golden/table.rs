//! `[test]` of a `plugin.toml`.

use gavel_plugin::{Grants, LimitsTable};
use gavel_scoring::ExecTable;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::PathBuf;

/// How `gavel plugin test` runs a plugin.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct TestTable {
    /// The file of cases, in the project's folder; `cases.jsonl` by default.
    pub cases: PathBuf,
    /// The parameters of cases without their own.
    pub params: Map<String, Value>,
    /// The limits of a call, as `[limits]` of a run.
    pub limits: LimitsTable,
    /// Its grants, as `grant` of a `[[reward]]`.
    pub grant: Grants,
    /// The endpoints that it may be granted, by name.
    pub chat: BTreeMap<String, FakeChatTable>,
    /// The programs that it may be granted, by name; a path is from the
    /// project's folder.
    pub exec: BTreeMap<String, ExecTable>,
}

/// `[test.chat.NAME]`
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FakeChatTable {
    /// Its replies in each case, one request after another.
    pub replies: Vec<String>,
}

impl Default for TestTable {
    fn default() -> Self {
        Self {
            cases: "cases.jsonl".into(),
            params: Map::new(),
            limits: LimitsTable::default(),
            grant: Grants::default(),
            chat: BTreeMap::new(),
            exec: BTreeMap::new(),
        }
    }
}
