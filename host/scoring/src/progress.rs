//! What a sample on its way waits for.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// The judges that a sample waits for; copies see the same.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Mutex<Vec<(String, Instant)>>>);

/// A wait, which ends when this is dropped.
pub(crate) struct Wait<'a> {
    progress: &'a Progress,
    begun: Instant,
    name: &'a str,
}

impl Progress {
    /// The judges that have been asked and have not answered yet, by name, and since when.
    pub fn waits(&self) -> Vec<(String, Instant)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Notes that the sample waits for a judge.
    pub(crate) fn wait_for<'a>(&'a self, name: &'a str) -> Wait<'a> {
        let begun = Instant::now();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push((name.to_owned(), begun));
        Wait { progress: self, begun, name }
    }
}

impl Drop for Wait<'_> {
    fn drop(&mut self) {
        let mut waits = self.progress.0.lock().unwrap_or_else(PoisonError::into_inner);
        waits.retain(|(name, begun)| (name.as_str(), begun) != (self.name, &self.begun));
    }
}
