//! The limits of compiling a component.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The limits of loading a component.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadLimits {
    /// Bytes of the component. reasoning-gym, CPython with its packages and
    /// their data, has 134 MB.
    pub size: usize,
    /// Bytes of address space of the compiler, beside the program itself.
    /// reasoning-gym takes 1.2 GB.
    pub memory: usize,
    /// Processor time of the compiler, all threads together. CPython takes 12 s.
    pub cpu: Duration,
    /// Wall-clock time of the compiler, for a machine that is busy.
    pub timeout: Duration,
}

impl Default for LoadLimits {
    fn default() -> Self {
        Self { size: 512 << 20, memory: 4 << 30, cpu: Duration::from_secs(120), timeout: Duration::from_secs(600) }
    }
}

/// A limit of [`LoadLimits`] that the compiler exceeded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoadBudget {
    /// [`LoadLimits::memory`]
    Memory,
    /// [`LoadLimits::cpu`]
    Cpu,
    /// [`LoadLimits::timeout`]
    Timeout,
}

impl LoadBudget {
    /// Its key in a configuration.
    pub fn key(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Cpu => "cpu",
            Self::Timeout => "timeout",
        }
    }
}
