//! What a run will need of its device's memory, part by part.

use bytesize::ByteSize;
use gavel_policy::device::DeviceMemory;
use gavel_rollout::CacheDuring;
use std::fmt;

/// The most memory that a run needs, in bytes, and the memory that its device has.
#[derive(Debug, Clone, PartialEq)]
pub struct Prediction {
    /// Parts that are there all the time: weights, reference, optimiser.
    pub kept: Vec<Part>,
    /// Keys and values: there all the time or, where they do not fit beside an update, except in updates.
    pub cache: Option<Part>,
    /// Whether keys and values may be freed before an update.
    pub may_release_cache: bool,
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
    /// Whether the device is one that a dry run plans for.
    pub is_planned: bool,
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
        let cache = self.cache.as_ref().map_or(0, |cache| cache.bytes);
        let beside_update = if self.releases_cache() { 0 } else { cache };
        let others = sum(&self.rollout).max(sum(&self.scoring)) + cache;
        sum(&self.kept) + others.max(sum(&self.update) + beside_update)
    }

    /// Whether keys and values are freed before each update: the device has no room for them beside it.
    fn releases_cache(&self) -> bool {
        let (Some(cache), Some(memory), true) = (&self.cache, self.memory, self.may_release_cache) else {
            return false;
        };
        // All of the memory, not what is free at the moment: a run that is started again does the same.
        sum(&self.kept) + sum(&self.update) + cache.bytes > memory.total
    }

    /// Logs what the user who started the run must know, and gives what becomes of keys and values in updates.
    pub(crate) fn announce(&self) -> CacheDuring {
        if let Some(warning) = self.warning() {
            tracing::warn!("{warning}");
        }
        if !self.releases_cache() {
            return CacheDuring::Kept;
        }
        tracing::info!(
            "keys and values are freed before each update: {} has no room for both\nhint: a smaller rollout.cache_memory keeps both",
            self.device
        );
        CacheDuring::Released
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
        let cached = if self.releases_cache() { "except in an update" } else { "always" };
        let parts = [
            ("always", &self.kept[..]),
            (cached, self.cache.as_slice()),
            ("in an update", &self.update),
            ("in rollout", &self.rollout),
            ("in scoring", &self.scoring),
        ];
        for (when, Part { what, bytes }) in parts.iter().flat_map(|(when, parts)| parts.iter().map(move |p| (when, p)))
        {
            writeln!(f, "{when}: {what}: {}", ByteSize(*bytes))?;
        }
        write!(f, "at most: {}", ByteSize(self.total()))?;
        match self.memory {
            Some(DeviceMemory { total, .. }) if self.is_planned => {
                let fits = if self.total() <= total { "fits" } else { "does not fit" };
                write!(f, "; {} has {}, and the run {fits}", self.device, ByteSize(total))
            }
            Some(DeviceMemory { total, free }) => {
                write!(f, "; {} has {}, of which {} are free", self.device, ByteSize(total), ByteSize(free))
            }
            None => write!(f, "; the memory of {} is not known", self.device),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(what: &str, bytes: u64) -> Part {
        Part { what: what.into(), bytes }
    }

    fn prediction(memory: u64) -> Prediction {
        Prediction {
            kept: vec![part("weights", 10)],
            cache: Some(part("keys and values", 30)),
            may_release_cache: true,
            update: vec![part("gradients", 50)],
            rollout: vec![part("prompts", 5)],
            scoring: Vec::new(),
            loaded: 0,
            device: "cuda:0".into(),
            memory: Some(DeviceMemory { total: memory, free: memory }),
            is_planned: false,
            advice: None,
        }
    }

    #[test]
    fn keys_and_values_are_let_go_where_they_do_not_fit_beside_an_update() {
        // 10 + 50 + 30 fit.
        let (both, one) = (prediction(90), prediction(89));
        assert_eq!((both.total(), both.announce(), both.warning()), (90, CacheDuring::Kept, None));
        // The update alone is the most.
        assert_eq!((one.total(), one.announce(), one.warning()), (60, CacheDuring::Released, None));
        assert!(both.to_string().contains("always: keys and values: 30 B\n"), "{both}");
        assert!(one.to_string().contains("except in an update: keys and values: 30 B\n"), "{one}");
        // Rollout has the most: 10 + 5 + 60.
        let large = Prediction { cache: Some(part("keys and values", 60)), ..prediction(89) };
        assert_eq!((large.total(), large.announce()), (75, CacheDuring::Released));
        // Another device draws; or the memory is not known.
        let other = Prediction { may_release_cache: false, ..prediction(89) };
        assert_eq!((other.total(), other.announce()), (90, CacheDuring::Kept));
        let unknown = Prediction { memory: None, ..prediction(89) };
        assert_eq!((unknown.total(), unknown.announce()), (90, CacheDuring::Kept));
    }
}
