//! The table of limits in a configuration.

use crate::budget::limits::Limits;
use bytesize::ByteSize;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `[limits]` of a run, and `limits` of one of its plugins. An absent limit has
/// its value in [`Limits::default`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LimitsTable {
    /// Wall-clock time, waits included.
    #[serde(default, with = "humantime_serde::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<gavel_data::DurationForm>")]
    pub timeout: Option<Duration>,
    /// Time on a processor.
    #[serde(default, with = "humantime_serde::option", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<gavel_data::DurationForm>")]
    pub cpu: Option<Duration>,
    /// Linear memories, tables, and memory of the host for the call, together.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<gavel_data::SizeForm>")]
    pub memory: Option<ByteSize>,
    /// Instructions; not metered by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fuel: Option<u64>,
    /// Bytes that it passes to the host at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<gavel_data::SizeForm>")]
    pub output: Option<ByteSize>,
    /// Bytes that it prints.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<gavel_data::SizeForm>")]
    pub log: Option<ByteSize>,
    /// Requests to models and servers, and jobs of programs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub requests: Option<usize>,
    /// Resources of the host that it holds open.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handles: Option<usize>,
}

/// A limit that would end every call.
#[derive(Debug, thiserror::Error)]
#[error("{key} must be more than 0, not 0")]
pub struct ZeroLimit {
    /// The limit, with its tables.
    pub key: String,
}

impl LimitsTable {
    /// Checks the values; `table` names the table in the error.
    ///
    /// # Errors
    /// A limit is 0.
    pub fn validate(&self, table: &str) -> Result<(), ZeroLimit> {
        let zeros = [
            ("timeout", self.timeout.is_some_and(|time| time.is_zero())),
            ("cpu", self.cpu.is_some_and(|time| time.is_zero())),
            ("memory", self.memory.is_some_and(|size| size.0 == 0)),
            ("fuel", self.fuel == Some(0)),
            ("output", self.output.is_some_and(|size| size.0 == 0)),
            ("handles", self.handles == Some(0)),
        ];
        match zeros.into_iter().find(|(_, zero)| *zero) {
            Some((key, _)) => Err(ZeroLimit { key: format!("{table}.{key}") }),
            None => Ok(()),
        }
    }

    /// These limits, with the default where one is absent. Fuel is not metered by default and stays absent.
    #[must_use]
    pub fn complete(&self) -> Self {
        let Limits { deadline, cpu, memory, fuel, output, log, requests, handles } = self.over(&Self::default());
        let size = |bytes: usize| Some(ByteSize(bytes as u64));
        Self {
            timeout: Some(deadline),
            cpu: Some(cpu),
            memory: size(memory),
            fuel,
            output: size(output),
            log: size(log),
            requests: Some(requests),
            handles: Some(handles),
        }
    }

    /// These limits. An absent limit is taken from `others`.
    pub fn over(&self, others: &Self) -> Limits {
        let default = Limits::default();
        Limits {
            deadline: self.timeout.or(others.timeout).unwrap_or(default.deadline),
            cpu: self.cpu.or(others.cpu).unwrap_or(default.cpu),
            memory: self.memory.or(others.memory).map_or(default.memory, bytes),
            fuel: self.fuel.or(others.fuel),
            output: self.output.or(others.output).map_or(default.output, bytes),
            log: self.log.or(others.log).map_or(default.log, bytes),
            requests: self.requests.or(others.requests).unwrap_or(default.requests),
            handles: self.handles.or(others.handles).unwrap_or(default.handles),
        }
    }
}

/// A size in bytes, as `usize`.
fn bytes(size: ByteSize) -> usize {
    usize::try_from(size.0).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reward_s_own_limits_come_first() {
        let all: LimitsTable = toml::from_str("timeout = \"5s\"\nfuel = 7").unwrap();
        let own: LimitsTable = toml::from_str("timeout = \"1s\"\nmemory = \"1MiB\"").unwrap();
        let limits = own.over(&all);
        let expected = Limits { deadline: Duration::from_secs(1), memory: 1 << 20, fuel: Some(7), ..Limits::default() };
        assert_eq!(limits, expected);
    }

    #[test]
    fn a_complete_table_says_what_is_the_case() {
        let table: LimitsTable = toml::from_str("cpu = \"3s\"").unwrap();
        let complete = table.complete();
        assert_eq!(complete.over(&LimitsTable::default()), table.over(&LimitsTable::default()));
        let written = toml::to_string(&complete).unwrap();
        assert!(written.contains("timeout = \"10s\"\ncpu = \"3s\"\nmemory = \"256.0 MiB\""), "{written}");
        assert_eq!(toml::from_str::<LimitsTable>(&written).unwrap(), complete);
    }

    #[test]
    fn nothing_is_allowed_nothing() {
        let table: LimitsTable = toml::from_str("cpu = \"0s\"").unwrap();
        assert!(table.validate("limits").unwrap_err().to_string().contains("limits.cpu"));
        assert!(toml::from_str::<LimitsTable>("deadline = \"1s\"").is_err());
    }
}
