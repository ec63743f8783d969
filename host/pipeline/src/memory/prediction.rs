//! What a run will need of its device's memory, part by part.

use bytesize::ByteSize;
use gavel_policy::device::DeviceMemory;
use std::fmt;

/// The most memory that a run needs, in bytes, and the memory that its device has.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Parts that are there all the time: weights, reference, optimiser, keys and values.
    pub kept: Vec<Part>,
    /// Parts that an update adds.
    pub update: Vec<Part>,
    /// Parts that rollout adds.
    pub rollout: Vec<Part>,
    /// Parts that reward models add on the device of the policy.
    pub scoring: Vec<Part>,
    /// The bytes of `kept` that are loaded already, and so are not free.
    pub loaded: u64,
    /// The device.
    pub device: String,
    /// The memory of the device, if the system reports it.
    pub memory: Option<DeviceMemory>,
    /// The setting that saves most, with its value, and how much it saves.
    pub advice: Option<(String, u64)>,
}

/// A part of the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// What takes it.
    pub what: String,
    /// How much.
    pub bytes: u64,
}

fn sum(parts: &[Part]) -> u64 {
    parts.iter().map(|part| part.bytes).sum()
}

impl Prediction {
    /// The most at once: update, rollout and reward models take turns.
    pub fn total(&self) -> u64 {
        sum(&self.kept) + sum(&self.update).max(sum(&self.rollout)).max(sum(&self.scoring))
    }

    /// A warning if the device does not have that much.
    pub fn warning(&self) -> Option<String> {
        let excess = (self.total() - self.loaded.min(self.total()))
            .checked_sub(self.memory?.free)
            .filter(|excess| *excess > 0)?;
        let needs = ByteSize(self.total() - self.loaded.min(self.total()));
        let free = ByteSize(self.memory?.free);
        let hint = match &self.advice {
            Some((setting, saved)) => {
                let more = if *saved < excess { ", which alone is not enough" } else { "" };
                format!("{setting} would save {}{more}", ByteSize(*saved))
            }
            None => "use a smaller model, or a device with more memory".into(),
        };
        Some(format!("the run may need {needs} of memory, and {} has {free} free\nhint: {hint}", self.device))
    }
}

impl fmt::Display for Prediction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (when, parts) in [
            ("always", &self.kept),
            ("in an update", &self.update),
            ("in rollout", &self.rollout),
            ("in scoring", &self.scoring),
        ] {
            for Part { what, bytes } in parts {
                writeln!(f, "{when}: {what}: {}", ByteSize(*bytes))?;
            }
        }
        write!(f, "at most: {}", ByteSize(self.total()))?;
        match self.memory {
            Some(DeviceMemory { total, free }) => {
                write!(f, "; {} has {}, of which {} are free", self.device, ByteSize(total), ByteSize(free))
            }
            None => write!(f, "; the memory of {} is not known", self.device),
        }
    }
}
