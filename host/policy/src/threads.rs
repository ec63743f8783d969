//! The threads that libtorch computes with.
//!
//! OpenMP keeps a team of threads for each thread that has used it. Once all teams together have more threads than there
//! are cores, a thread that waits sleeps at once where it would spin, and a step of a small model takes a quarter longer.
//! So only the thread of a device keeps a team: what else computes does so in a thread that [ends](apart), or
//! [alone](alone_here).

use std::panic::resume_unwind;
use std::thread;

/// Runs `work` in a thread of its own, whose team ends with it.
pub fn apart<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join().unwrap_or_else(|panic| resume_unwind(panic)))
}

/// Has this thread compute alone from now on, and all threads that have not computed yet as they would have. Before
/// anything is computed.
pub fn alone_here() {
    // What asks is told for good: a later change is for other threads.
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
