//! `[resources.loading]`: what loading a component may use.

use crate::checks::bytes;
use crate::error::ConfigError;
use bytesize::ByteSize;
use gavel_plugin::LoadLimits;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// `[resources.loading]`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct LoadingTable {
    /// The size of the file.
    #[schemars(with = "gavel_data::SizeForm")]
    pub size: ByteSize,
    /// Memory of the process that compiles it, as address space.
    #[schemars(with = "gavel_data::SizeForm")]
    pub memory: ByteSize,
    /// Processor time of that process, all of its threads together.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "gavel_data::DurationForm")]
    pub cpu: Duration,
    /// Wall-clock time of that process.
    #[serde(with = "humantime_serde")]
    #[schemars(with = "gavel_data::DurationForm")]
    pub timeout: Duration,
}

impl Default for LoadingTable {
    fn default() -> Self {
        let LoadLimits { size, memory, cpu, timeout } = LoadLimits::default();
        Self { size: ByteSize(size as u64), memory: ByteSize(memory as u64), cpu, timeout }
    }
}

impl LoadingTable {
    pub(super) fn validate(&self) -> Result<(), ConfigError> {
        let zeros = [
            ("size", self.size.0 == 0),
            ("memory", self.memory.0 == 0),
            ("cpu", self.cpu.is_zero()),
            ("timeout", self.timeout.is_zero()),
        ];
        match zeros.into_iter().find(|(_, zero)| *zero) {
            Some((key, _)) => Err(ConfigError::value(&format!("resources.loading.{key}"), "more than 0", 0)),
            None => Ok(()),
        }
    }

    pub(super) fn limits(&self) -> LoadLimits {
        let Self { size, memory, cpu, timeout } = *self;
        LoadLimits { size: bytes(size), memory: bytes(memory), cpu, timeout }
    }
}
