//! Adds functions to a snapshot of a component that set an instance back to it.
//!
//! A new instance of an interpreter costs hundreds of page faults, so an instance
//! that a call leaves is set back, where it then equals a new one in all that a
//! guest can see: its memory, its globals, and the numbers of its next handles.
//! Its tables and segments must not change at all, which its code shows.

mod functions;
mod image;
mod module;
mod not_reset;
mod parts;
mod rewrite;

use crate::compile::merge::items;
pub(crate) use functions::{MEMORY, MEMORY_START, REST, STRETCHES};
use not_reset::NotReset;
use parts::Parts;
use std::borrow::Cow;

/// A snapshot with the functions that set an instance back, if its form allows them.
pub(super) fn with_reset(snapshot: &[u8]) -> Cow<'_, [u8]> {
    match rewrite(snapshot) {
        Ok(rewritten) => Cow::Owned(rewritten),
        Err(reason) => {
            tracing::debug!("instances of a plugin are not set back: {reason}");
            Cow::Borrowed(snapshot)
        }
    }
}

fn rewrite(snapshot: &[u8]) -> Result<Vec<u8>, NotReset> {
    let rewritten = rewrite::rewrite(snapshot, &Parts::of(snapshot)?)?;
    // With more modules, it can exceed a limit.
    items(&rewritten)?;
    Ok(rewritten)
}

#[cfg(test)]
mod tests;
