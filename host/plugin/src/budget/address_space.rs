//! The address space of this process, which `ulimit -v` and batch systems may limit. Each instance reserves far more than
//! it uses.

use crate::budget::machine_limits;

/// The bytes that an instance reserves: two memories of 4 GiB with their guards, and a stack.
const INSTANCE: u64 = 9 << 30;
/// The instances of plugins use the address space divided by this. The rest is for the model.
const SHARE: u64 = 2;
/// The fewest instances: a session, a call that it waits for, and a child of that call.
const FEWEST: u64 = 3;
/// Of so many instances, one is a child.
const CHILD_OF: usize = 4;

/// The instances that a limited address space has room for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AddressSpace {
    /// Calls and sessions at the same time.
    pub(crate) instances: usize,
    /// Children at the same time.
    pub(crate) children: usize,
}

/// There is no room for plugins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooSmall {
    /// The bytes that the process may have.
    pub(crate) limit: u64,
    /// The bytes that it needs, with what it has used.
    pub(crate) needed: u64,
}

impl AddressSpace {
    /// The room in this process; `None` if nothing limits it.
    ///
    /// # Errors
    /// There is too little for plugins.
    pub(crate) fn of_this_process() -> Result<Option<Self>, TooSmall> {
        let Some(limit) = machine_limits::address_space() else { return Ok(None) };
        let space = Self::within(limit, machine_limits::used_address_space().unwrap_or_default())?;
        let Self { instances, children } = space;
        tracing::warn!(
            "the address space of this process is limited to {} MiB: plugins run without a pool, with {instances} calls \
             and {children} children at once\nhint: `ulimit -v unlimited` lifts the limit",
            limit >> 20
        );
        Ok(Some(space))
    }

    /// The room in a process with this limit that has used so much.
    fn within(limit: u64, used: u64) -> Result<Self, TooSmall> {
        let all = limit.saturating_sub(used) / SHARE / INSTANCE;
        if all < FEWEST {
            return Err(TooSmall { limit, needed: used.saturating_add(FEWEST * SHARE * INSTANCE) });
        }
        let all = usize::try_from(all).unwrap_or(usize::MAX);
        let children = (all / CHILD_OF).max(1);
        Ok(Self { instances: all - children, children })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instances_share_half_of_the_address_space() {
        let within = |gib: u64| AddressSpace::within(gib << 30, 10 << 30);
        assert_eq!(within(64), Ok(AddressSpace { instances: 2, children: 1 }));
        assert_eq!(within(10 + 18 * 100), Ok(AddressSpace { instances: 75, children: 25 }));
        assert_eq!(within(63), Err(TooSmall { limit: 63 << 30, needed: 64 << 30 }));
    }
}
