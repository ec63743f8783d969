//! The names of a run's versions of its weights.

/// What the names of every run begin with.
const START: &str = "gavel-";

/// The name of a run, which no other run has. A server that was started again has none of its versions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct RunName(String);

impl RunName {
    /// The name of the run with this salt.
    pub(super) fn new(salt: u64) -> Self {
        Self(format!("{START}{salt:016x}"))
    }

    pub(super) fn as_str(&self) -> &str {
        &self.0
    }

    /// The name of a version of its weights.
    pub(super) fn of_version(&self, version: u64) -> String {
        format!("{}-{version}", self.0)
    }

    /// The version of a name, if this run gave it.
    pub(super) fn version(&self, name: &str) -> Option<u64> {
        name.strip_prefix(&self.0)?.strip_prefix('-')?.parse().ok()
    }

    /// Whether another run gave this name.
    pub(super) fn is_of_another(&self, name: &str) -> bool {
        name.starts_with(START) && self.version(name).is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_knows_its_own_names() {
        let (own, other) = (RunName::new(7), RunName::new(8));
        assert_eq!(own.version(&own.of_version(12)), Some(12));
        for name in [other.of_version(12), "default".into(), own.as_str().into(), format!("{}0-1", own.as_str())] {
            assert_eq!(own.version(&name), None, "{name}");
        }
        assert!(own.is_of_another(&other.of_version(12)));
        assert!(!own.is_of_another(&own.of_version(12)) && !own.is_of_another("default"));
    }
}
