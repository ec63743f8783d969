//! The threads that libtorch computes with.
//!
//! OpenMP keeps a team of threads for each thread that has used it. Once all teams together have more threads than
//! there are cores, a waiting thread sleeps at once instead of spinning, and a step of a small model takes a quarter
//! longer. So only the thread of a device keeps a team. Other work computes in a thread that [ends](apart), or
//! [alone](alone_here).

use std::panic::resume_unwind;
use std::thread;

/// Runs `work` in a new thread, whose team ends with it.
pub fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|panic| resume_unwind(panic)))
}

/// Makes this thread compute alone from now on. Threads that have not computed yet keep the default. Call it before
/// anything is computed.
pub fn alone_here() {
    // A thread that asks for the number keeps it: a later change applies to
    // other threads.
    let all = tch::get_num_threads();
    tch::set_num_threads(1);
    apart(|| tch::set_num_threads(all));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_thread_that_asked_computes_alone() {
        apart(|| {
            tch::set_num_threads(3);
            alone_here();
            assert_eq!((tch::get_num_threads(), apart(tch::get_num_threads)), (1, 3));
            apart(|| tch::set_num_threads(2));
            assert_eq!((tch::get_num_threads(), apart(tch::get_num_threads)), (1, 2));
        });
    }
}
