//! Threads for plugins. They run at a lower priority than the thread that
//! owns the device: a judge may be late, the device must not wait.

use std::io;
use tokio::runtime::{Builder, Runtime};

/// Steps of `nice` below the rest of the process: a tenth of a core's time where libtorch wants it too. With 5 steps,
/// two busy plugins left decoding 40 % of its speed; with 19, a plugin beside it would hardly end before its deadline.
#[cfg(target_os = "linux")]
const NICE: libc::c_int = 10;

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
