//! A call's requests and their limit.

use crate::budget::limits::Limits;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The requests of a call: to language models, to servers, for programs.
pub(crate) struct RequestBudget {
    limit: usize,
    made: AtomicUsize,
}

/// The error of a call that made too many requests.
#[derive(Debug, Clone, Copy, thiserror::Error)]
#[error("more than {0} requests were made in one call")]
pub(crate) struct TooManyRequests(pub(crate) usize);

impl RequestBudget {
    /// The budget of one call.
    pub(crate) fn new(limits: &Limits) -> Arc<Self> {
        Arc::new(Self { limit: limits.requests, made: AtomicUsize::new(0) })
    }

    /// Counts requests that the guest makes at once.
    pub(crate) fn add(&self, count: usize) -> Result<(), TooManyRequests> {
        self.made.fetch_add(count, Ordering::Relaxed);
        self.check()
    }

    /// Fails if more requests were made than are allowed.
    pub(crate) fn check(&self) -> Result<(), TooManyRequests> {
        match self.made.load(Ordering::Relaxed) > self.limit {
            true => Err(TooManyRequests(self.limit)),
            false => Ok(()),
        }
    }
}
