//! The work of a check, counted so that it is the same on every machine.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The check takes more than the steps that a check has.
pub(super) struct TooManySteps;

pub(super) type Checked<T> = Result<T, TooManySteps>;

/// How long a check may take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// Milliseconds at worst.
    Short,
    /// Seconds at worst.
    Full,
}

/// The steps that a check may still take. A step is some nanoseconds of work: so many bytes are compared.
pub(super) struct Steps {
    left: u64,
    /// Whether nobody waits for the check any more.
    is_given_up: Option<Arc<AtomicBool>>,
}

impl Steps {
    /// The steps of a full check: seconds on one core at worst, and microseconds for what honest tools need.
    const MAX: u64 = 200_000_000;
    /// The steps of a short check.
    const SHORT: u64 = 1_000_000;
    /// The steps of looking at a schema and a value, whatever they are.
    pub(super) const VISIT: u64 = 128;
    /// The steps of looking at a member or an item.
    pub(super) const PART: u64 = 16;

    /// The steps of a check.
    pub(super) fn of_check(extent: Extent) -> Self {
        Self { left: most(extent), is_given_up: None }
    }

    /// The same steps, of which none is left once nobody waits for the check.
    pub(super) fn until(self, is_given_up: Arc<AtomicBool>) -> Self {
        Self { is_given_up: Some(is_given_up), ..self }
    }

    /// Has the steps of describing what is wrong with a value in place of those that are left.
    pub(super) fn describe(&mut self, extent: Extent) {
        self.left = most(extent) / 10;
    }

    /// Takes steps.
    ///
    /// # Errors
    /// There are not so many left.
    pub(super) fn take(&mut self, steps: u64) -> Checked<()> {
        if self.is_given_up.as_ref().is_some_and(|is_given_up| is_given_up.load(Ordering::Relaxed)) {
            return Err(TooManySteps);
        }
        self.left = self.left.checked_sub(steps).ok_or(TooManySteps)?;
        Ok(())
    }
}

fn most(extent: Extent) -> u64 {
    match extent {
        Extent::Short => Steps::SHORT,
        Extent::Full => Steps::MAX,
    }
}
