//! The work of a check, counted so that it is the same on every machine.

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
pub(super) struct Steps(u64);

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
        Self(match extent {
            Extent::Short => Self::SHORT,
            Extent::Full => Self::MAX,
        })
    }

    /// The steps of describing what is wrong with a value.
    pub(super) fn of_description(extent: Extent) -> Self {
        Self(Self::of_check(extent).0 / 10)
    }

    /// Takes steps.
    ///
    /// # Errors
    /// There are not so many left.
    pub(super) fn take(&mut self, steps: u64) -> Checked<()> {
        self.0 = self.0.checked_sub(steps).ok_or(TooManySteps)?;
        Ok(())
    }
}
