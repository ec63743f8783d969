//! Rewards that are loaded, until they are closed.

use crate::calls::Calls;
use crate::error::unusable;
use gavel_scoring::Scorer;
use pyo3::prelude::*;
use std::process;
use std::sync::{Arc, Mutex, PoisonError};

/// Loaded rewards, in the process whose threads score.
pub struct Loaded {
    /// `None` once they are closed.
    open: Mutex<Option<Arc<Scorer>>>,
    seed: u64,
    process: u32,
}

impl Loaded {
    /// `seed` is the seed of the random numbers that rewards see.
    pub fn new(scorer: Scorer, seed: u64) -> Self {
        Self { open: Mutex::new(Some(Arc::new(scorer))), seed, process: process::id() }
    }

    /// Whether this process was forked from theirs.
    pub fn is_forked(&self) -> bool {
        self.process != process::id()
    }

    /// For calls of them.
    ///
    /// # Errors
    /// They are closed, or of another process.
    pub fn calls(&self) -> PyResult<Calls> {
        if self.is_forked() {
            return Err(unusable(
                "this Scorer belongs to the process that forked this one, and its threads are there\nhint: create the Scorer after the fork, or start processes with multiprocessing.get_context(\"spawn\")",
            ));
        }
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let scorer = open.clone().ok_or_else(|| unusable("this Scorer is closed\nhint: create another one"))?;
        Ok(Calls::new(scorer, self.seed))
    }

    /// Refuses further rows; calls under way still end.
    pub fn close(&self, py: Python<'_>) {
        if !self.is_forked() {
            let scorer = self.open.lock().unwrap_or_else(PoisonError::into_inner).take();
            py.detach(|| drop(scorer));
        }
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        if self.is_forked() {
            // Its threads are in the parent.
            let scorer = self.open.get_mut().unwrap_or_else(PoisonError::into_inner).take();
            std::mem::forget(scorer);
        }
    }
}
