//! The machine's limits for plugins.

/// Memory maps of one instance: its memory, its stack, their guards.
const MAPS_PER_INSTANCE: usize = 6;
/// Maps that the rest of the process needs: libraries, threads, libtorch.
const OTHER_MAPS: usize = 5_000;
/// The kernel's default limit, where the limit cannot be read.
const DEFAULT_MAPS: usize = 65_530;

/// The most instances at the same time before the kernel refuses a map.
pub(crate) fn max_instances() -> usize {
    let maps = read("/proc/sys/vm/max_map_count").unwrap_or(DEFAULT_MAPS);
    (maps.saturating_sub(OTHER_MAPS) / MAPS_PER_INSTANCE).max(1)
}

/// Bytes of memory that this process may use: the machine's, or its cgroup's.
pub(crate) fn memory() -> usize {
    // SAFETY: both calls only read a number.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let machine = usize::try_from(pages).unwrap_or(0).saturating_mul(usize::try_from(size).unwrap_or(0));
    read("/sys/fs/cgroup/memory.max").map_or(machine, |group| group.min(machine))
}

/// The most bytes of address space that this process may have; `None` without a limit.
pub(crate) fn address_space() -> Option<u64> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local that outlives the call, which writes nothing else.
    let is_read = unsafe { libc::getrlimit(libc::RLIMIT_AS, &mut limit) } == 0;
    (is_read && limit.rlim_cur != libc::RLIM_INFINITY).then_some(limit.rlim_cur)
}

/// The address space that this process has, in bytes. Only Linux reports it.
pub(crate) fn used_address_space() -> Option<u64> {
    let pages = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = pages.split_whitespace().next()?.parse().ok()?;
    // SAFETY: it has no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    Some(pages * u64::try_from(page).ok()?)
}

/// Raises this process's limit of open files to its maximum, since files that
/// plugins read count for it too.
pub(crate) fn allow_open_files() {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local that outlives both calls. A failure leaves the limit as it was.
    unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) == 0 {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &limit);
        }
    }
}

fn read(path: &str) -> Option<usize> {
    std::fs::read_to_string(path).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_has_something_for_plugins() {
        assert!(max_instances() >= 1);
        assert!(memory() > 64 << 20);
    }
}
