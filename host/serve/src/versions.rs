//! The names that clients give to the versions of a model's weights.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The version before a client has set one, as in vLLM.
const FIRST: &str = "default";

/// The names of the versions of a model's weights. The engine knows a version by its number.
pub struct Versions(Mutex<Vec<String>>);

impl Default for Versions {
    fn default() -> Self {
        Self(Mutex::new(vec![FIRST.to_owned()]))
    }
}

impl Versions {
    /// The name of the newest version.
    pub(crate) fn newest(&self) -> String {
        self.lock().last().cloned().unwrap_or_default()
    }

    /// The name of version `number`.
    pub(crate) fn name(&self, number: u64) -> String {
        usize::try_from(number).ok().and_then(|at| self.lock().get(at).cloned()).unwrap_or_default()
    }

    /// Adds a version. `declare` tells its number to the engine; no other version is added meanwhile. There is no new
    /// version if it fails.
    pub(crate) fn add<E>(&self, name: String, declare: impl FnOnce(u64) -> Result<(), E>) -> Result<(), E> {
        let mut names = self.lock();
        declare(names.len() as u64)?;
        names.push(name);
        Ok(())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
