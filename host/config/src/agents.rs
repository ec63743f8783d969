//! The agents of a run: `[agent]`, or several `[[agent]]` tables, of which each row has one.

use crate::agent::{AgentKind, AgentTable, ToolTable};
use crate::checks::check_distinct;
use crate::error::ConfigError;
use gavel_data::{Json, Task};
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{Error, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeSet;
use std::fmt;

/// Agents as they are written: `[agent]` is one without a name, `[[agent]]` are some with names.
#[derive(Debug, Clone, PartialEq, schemars::JsonSchema)]
pub struct AgentTables(#[schemars(with = "AgentsForm")] Vec<AgentTable>);

/// Agents as they are written.
#[derive(schemars::JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "only its schema is used")]
enum AgentsForm {
    One(Box<AgentTable>),
    Several(Vec<AgentTable>),
}

impl Default for AgentTables {
    fn default() -> Self {
        AgentTable::default().into()
    }
}

impl From<AgentTable> for AgentTables {
    fn from(table: AgentTable) -> Self {
        Self(vec![table])
    }
}

impl AgentTables {
    /// The tables, in their order.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &AgentTable> {
        self.0.iter()
    }

    /// The components of the agents, as they are written.
    pub fn paths_mut(&mut self) -> impl Iterator<Item = &mut Option<std::path::PathBuf>> {
        self.0.iter_mut().map(|table| &mut table.path)
    }

    /// Whether the run has `[[agent]]` tables.
    pub fn are_named(&self) -> bool {
        self.0.iter().any(|table| table.name.is_some())
    }

    /// Whether nothing is configured.
    pub(super) fn are_default(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a sample may have several turns.
    pub fn have_turns(&self) -> bool {
        self.iter().any(AgentTable::has_turns)
    }

    /// The number of the agent that attempts `task`: the one that the row's column `agent_name` names, else the one whose
    /// `data_sources` have the row's, else the only one without `data_sources`. `[agent]` attempts every task.
    ///
    /// # Errors
    /// None does, or several could; the error says so.
    pub fn number_of(&self, task: &Task) -> Result<usize, String> {
        if !self.are_named() {
            return Ok(0);
        }
        let names = || self.iter().filter_map(|table| table.name.as_deref());
        let listed = || names().collect::<Vec<_>>().join(", ");
        if let Some(wanted) = task.reference.columns.present("agent_name").map(Json::plain_text) {
            let number = names().position(|name| name == wanted);
            return number
                .ok_or_else(|| format!("agent_name: no [[agent]] is named `{wanted}`; there are: {}", listed()));
        }
        let source = task.data_source.as_deref();
        let has_source = |table: &AgentTable| table.data_sources.iter().any(|own| Some(own.as_str()) == source);
        if let Some(number) = self.iter().position(has_source) {
            return Ok(number);
        }
        let mut others = self.0.iter().enumerate().filter(|(_, table)| table.data_sources.is_empty());
        match (others.next(), others.next()) {
            (Some((number, _)), None) => Ok(number),
            (None, _) => Err(format!(
                "no [[agent]] is for {}\nhint: add it to the data_sources of one, or name the agent in the row's column agent_name; there are: {}",
                source.map_or("a row without a data source".to_owned(), |source| format!("data source `{source}`")),
                listed()
            )),
            (Some(_), Some(_)) => Err(format!(
                "the row names no agent, and several have no data_sources\nhint: name one in the row's column agent_name, or set data_sources; there are: {}",
                listed()
            )),
        }
    }

    /// The agent that attempts a task that [`number_of`](Self::number_of) accepts; for another, the first.
    pub fn of(&self, task: &Task) -> &AgentTable {
        &self.0[self.number_of(task).unwrap_or(0)]
    }

    pub(super) fn validate(&self, tools: &[ToolTable]) -> Result<(), ConfigError> {
        self.iter().try_for_each(|table| table.validate(tools))?;
        if !self.are_named() {
            return Ok(());
        }
        check_distinct("agent", self.iter().filter_map(|table| table.name.as_deref()))?;
        let mut seen = BTreeSet::new();
        if let Some(source) = self.iter().flat_map(|table| &table.data_sources).find(|source| !seen.insert(*source)) {
            return Err(ConfigError::invalid(
                "agent",
                format!("two [[agent]] tables have the data source `{source}`\nhint: leave it out in one of them"),
            ));
        }
        let may_call = |tool: &ToolTable| self.iter().any(|table| table.may_call(&tool.name));
        match tools.iter().find(|tool| !may_call(tool)) {
            Some(tool) => Err(ConfigError::invalid(
                format!("tool.{}", tool.name),
                format!(
                    "no [[agent]] may call the tool `{}`\nhint: add it to the tools of one, or leave the [[tool]] out",
                    tool.name
                ),
            )),
            None => Ok(()),
        }
    }
}

/// As they were written.
impl Serialize for AgentTables {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0[..] {
            [table] if table.name.is_none() => table.serialize(serializer),
            tables => tables.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for AgentTables {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Forms;

        impl<'de> Visitor<'de> for Forms {
            type Value = AgentTables;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a table [agent], or several tables [[agent]]")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AgentTables, A::Error> {
                let table = AgentTable::deserialize(MapAccessDeserializer::new(map))?;
                if table.name.is_some() || !table.data_sources.is_empty() || table.tools.is_some() {
                    return Err(A::Error::custom(
                        "name, data_sources and tools are for several agents\nhint: write [[agent]] in place of [agent]",
                    ));
                }
                Ok(AgentTables(vec![table]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<AgentTables, A::Error> {
                let tables = Vec::<AgentTable>::deserialize(SeqAccessDeserializer::new(list))?;
                if tables.is_empty() || tables.iter().any(|table| table.name.is_none()) {
                    return Err(A::Error::custom(
                        "an [[agent]] has no name\nhint: give each a name, such as name = \"solver\"",
                    ));
                }
                Ok(AgentTables(tables))
            }
        }

        deserializer.deserialize_any(Forms)
    }
}

impl AgentTable {
    /// Whether it may call this tool of the run.
    pub fn may_call(&self, tool: &str) -> bool {
        match &self.tools {
            Some(tools) => tools.iter().any(|name| name == tool),
            None => self.kind == AgentKind::Tools || self.path.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use toml::Table;

    fn agents(written: &str) -> Result<AgentTables, String> {
        let table: Table = written.parse().unwrap();
        table["agent"].clone().try_into().map_err(|error: toml::de::Error| error.message().to_owned())
    }

    fn task(columns: &str) -> Task {
        let row = format!(r#"{{"prompt": "Go."{columns}}}"#);
        Task::from_row(serde_json::from_str(&row).unwrap(), 0, "train").unwrap()
    }

    const TWO: &str = r#"
        [[agent]]
        name = "solver"
        data_sources = ["math", "code"]
        max_turns = 2

        [[agent]]
        name = "writer"
    "#;

    #[test]
    fn a_row_names_its_agent_or_its_data_source_does() {
        let two = agents(TWO).unwrap();
        two.validate(&[]).unwrap();
        for (columns, number) in [
            ("", 1),
            (r#", "data_source": "math""#, 0),
            (r#", "data_source": "poems""#, 1),
            (r#", "data_source": "math", "agent_name": "writer""#, 1),
            (r#", "agent_name": "solver""#, 0),
            (r#", "data_source": "code", "agent_name": null"#, 0),
        ] {
            assert_eq!(two.number_of(&task(columns)), Ok(number), "{columns}");
        }
        assert_eq!(two.of(&task(r#", "agent_name": "solver""#)).max_turns, 2);
        let unknown = two.number_of(&task(r#", "agent_name": "tool_agent""#)).unwrap_err();
        assert_eq!(unknown, "agent_name: no [[agent]] is named `tool_agent`; there are: solver, writer");
    }

    #[test]
    fn a_row_that_no_agent_or_several_could_attempt_is_an_error() {
        let both = agents(&TWO.replace(r#"name = "writer""#, "name = \"writer\"\ndata_sources = [\"poems\"]")).unwrap();
        let error = both.number_of(&task(r#", "data_source": "maps""#)).unwrap_err();
        assert!(error.starts_with("no [[agent]] is for data source `maps`\nhint: "), "{error}");
        let error = both.number_of(&task("")).unwrap_err();
        assert!(error.starts_with("no [[agent]] is for a row without a data source\nhint: "), "{error}");
        let neither = agents(&TWO.replace(r#"data_sources = ["math", "code"]"#, "")).unwrap();
        let error = neither.number_of(&task("")).unwrap_err();
        assert!(error.starts_with("the row names no agent, and several have no data_sources\nhint: "), "{error}");
    }

    #[test]
    fn one_agent_attempts_every_task() {
        let one = agents("agent.max_turns = 3").unwrap();
        assert_eq!(one.number_of(&task(r#", "agent_name": "tool_agent""#)), Ok(0));
        assert!(!one.are_named() && AgentTables::default().are_default());
    }

    #[test]
    fn agents_are_written_as_they_were_read() {
        for written in ["agent.max_turns = 3", TWO] {
            let read = agents(written).unwrap();
            let again = Table::from_iter([("agent".to_owned(), toml::Value::try_from(&read).unwrap())]).to_string();
            assert_eq!(again.contains("[[agent]]"), written == TWO);
            assert_eq!(agents(&again).unwrap(), read);
        }
    }

    #[test]
    fn names_and_tools_are_checked() {
        let wrong = |written: &str| match agents(written) {
            Ok(agents) => agents.validate(&[]).unwrap_err().to_string(),
            Err(what) => what,
        };
        let first = |written: &str| wrong(written).lines().next().unwrap_or_default().to_owned();
        assert_eq!(first("agent.name = 'a'"), "name, data_sources and tools are for several agents");
        assert_eq!(first("[[agent]]\nmax_turns = 1"), "an [[agent]] has no name");
        assert_eq!(first("agent = []"), "an [[agent]] has no name");
        assert_eq!(first(&TWO.replace("writer", "solver")), "two agents are named `solver`");
        let twice = TWO.replace(r#"name = "writer""#, "name = \"writer\"\ndata_sources = [\"code\"]");
        assert_eq!(first(&twice), "two [[agent]] tables have the data source `code`");
        assert_eq!(
            first(&TWO.replace("max_turns = 2", "max_turns = 0")),
            "agent.solver.max_turns must be at least 1, not 0"
        );
        let tools = TWO.replace("max_turns = 2", "kind = 'tools'\ntools = ['maps']");
        assert_eq!(first(&tools), "agent.solver.tools: there is no [[tool]] named `maps`");
    }

    #[test]
    fn a_program_has_keys_of_its_own() {
        let program = |more: &str| agents(&format!("agent.command = ['python', 'agent.py']\n{more}"));
        let good = program("agent.limits.output = '1MB'\nagent.grant.env = ['HOME']\nagent.params.a = 1").unwrap();
        good.validate(&[]).unwrap();
        let table = good.iter().next().unwrap();
        assert!(table.is_program() && table.is_own() && good.have_turns() && !table.may_call("maps"));
        let spec = table.program(&gavel_plugin::LimitsTable::default()).unwrap();
        assert_eq!((spec.table.as_str(), spec.output, spec.concurrency.get()), ("agent", 1_000_000, 64));
        let command = ["python", "agent.py"].map(str::to_owned).to_vec();
        assert_eq!(spec.source, gavel_gateway::ProgramSource::Command { command, env: vec!["HOME".into()] });
        let url = agents("agent.url = 'http://127.0.0.1:9000/run'\nagent.concurrency = 2").unwrap();
        url.validate(&[]).unwrap();
        for (more, says) in [
            ("agent.kind = 'tools'", "both agent.kind and a program say what makes a sample"),
            ("agent.path = 'a.wasm'", "agent.path, agent.command and agent.url each say what the agent is"),
            ("agent.url = 'http://a'", "agent.path, agent.command and agent.url each say what the agent is"),
            ("agent.limits.memory = '1MB'", "agent.limits: a program runs outside of the sandbox"),
            ("agent.grant.chat = ['judge']", "agent.grant: a program runs outside of the sandbox"),
        ] {
            let error = program(more).unwrap().validate(&[]).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
        let wrong = |written: &str| agents(written).unwrap().validate(&[]).unwrap_err().to_string();
        assert!(wrong("agent.url = 'a:1'").starts_with("agent.url must be a URL"));
        let env = wrong("agent.url = 'http://a'\nagent.grant.env = ['HOME']");
        assert!(env.starts_with("agent.grant.env is for a program"), "{env}");
        assert!(wrong("agent.concurrency = 2").starts_with("agent.concurrency is for an agent that is a program"));
    }
}
