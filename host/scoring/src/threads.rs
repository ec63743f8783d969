//! Threads for plugins. They run at a lower priority than the thread that
//! owns the device: a judge may be late, the device must not wait.

use std::io;
use tokio::runtime::{Builder, Runtime};

/// Steps of `nice` below the rest of the process.
#[cfg(target_os = "linux")]
const NICE: libc::c_int = 5;

/// A runtime of `workers` threads.
pub(crate) fn runtime(workers: usize) -> io::Result<Runtime> {
    Builder::new_multi_thread()
        .worker_threads(workers)
        .thread_name("gavel-plugin")
        .enable_time()
        .on_thread_start(lower_priority)
        .build()
}

fn lower_priority() {
    #[cfg(target_os = "linux")]
    // SAFETY: both calls take and return plain integers. A failure leaves the priority as it was, which is harmless.
    unsafe {
        let thread = libc::syscall(libc::SYS_gettid) as libc::id_t;
        libc::setpriority(libc::PRIO_PROCESS, thread, NICE);
    }
}
