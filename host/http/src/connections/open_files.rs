//! The files that the process may open, sockets included.

/// Raises this process's limit of open files to its maximum, and gives it; `None` if it cannot be read.
pub(super) fn allow_open_files() -> Option<usize> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the pointer is to a local that outlives both calls. A failure leaves the limit as it was.
    let current = unsafe {
        if libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) != 0 {
            return None;
        }
        let raised = libc::rlimit { rlim_cur: limit.rlim_max, ..limit };
        if libc::setrlimit(libc::RLIMIT_NOFILE, &raised) == 0 { raised.rlim_cur } else { limit.rlim_cur }
    };
    Some(usize::try_from(current).unwrap_or(usize::MAX))
}
