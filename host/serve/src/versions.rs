//! The names that clients give to the versions of a model's weights.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The version before a client has set one, as in vLLM.
const FIRST: &str = "default";
/// How many names are kept. A response with tokens of an older version does not name it.
const KEPT: usize = 1024;

/// The names of the versions of a model's weights. The engine knows a version by its number.
pub struct Versions(Mutex<Names>);

struct Names {
    /// The names of the newest versions, in order.
    kept: VecDeque<String>,
    /// The number of the first of them.
    first: u64,
}

impl Default for Versions {
    fn default() -> Self {
        Self(Mutex::new(Names { kept: [FIRST.to_owned()].into(), first: 0 }))
    }
}

impl Versions {
    /// The name of the newest version.
    pub(crate) fn newest(&self) -> String {
        self.lock().kept.back().cloned().unwrap_or_default()
    }

    /// The name of version `number`.
    pub(crate) fn name(&self, number: u64) -> String {
        let names = self.lock();
        let at = number.checked_sub(names.first).and_then(|at| usize::try_from(at).ok());
        at.and_then(|at| names.kept.get(at).cloned()).unwrap_or_default()
    }

    /// Adds a version. `declare` tells its number to the engine; no other version is added meanwhile. There is no new
    /// version if it fails.
    pub(crate) fn add<E>(&self, name: String, declare: impl FnOnce(u64) -> Result<(), E>) -> Result<(), E> {
        let mut names = self.lock();
        declare(names.first + names.kept.len() as u64)?;
        names.kept.push_back(name);
        if names.kept.len() > KEPT {
            names.kept.pop_front();
            names.first += 1;
        }
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Names> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_names_are_kept() {
        let versions = Versions::default();
        assert_eq!((versions.name(0), versions.newest()), (FIRST.to_owned(), FIRST.to_owned()));
        for number in 1..=KEPT as u64 {
            let declare = |declared| if declared == number { Ok(()) } else { Err(declared) };
            versions.add(format!("run-{number}"), declare).unwrap();
        }
        assert_eq!((versions.name(0), versions.name(1)), (String::new(), "run-1".to_owned()));
        assert_eq!((versions.newest(), versions.name(KEPT as u64)), ("run-1024".to_owned(), "run-1024".to_owned()));
        assert!(versions.add("run-1025".into(), Err).is_err());
        assert_eq!((versions.newest(), versions.name(1025)), ("run-1024".to_owned(), String::new()));
    }
}
