//! What the pages that a call touches cost where several threads run calls: the kernel's work alone, without a guest.
//! As a call in Python does, each round reads and then writes 300 scattered pages of a memory of 12 MB that is a private
//! copy of a file, and after that gives the whole memory back (`madvise`), as wasmtime does beyond the first 32 stretches
//! of pages. The alternatives: processes in place of threads, pages that are written without being read before, and pages
//! that are kept and written back. In one process, a copy of a page that was read interrupts all cores that run its
//! threads, since they may still see the page of the file.
//!
//! `cargo bench --workspace --bench touched_pages`, on an idle machine.
#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::panic, missing_docs)]

use std::process::Command;
use std::time::Instant;

const PAGE: usize = 4096;
const PAGES: usize = 3000;
/// Every tenth page is touched.
const STRIDE: usize = 10;
const ROUNDS: usize = 2000;
/// A process that only runs rounds.
const CHILD: &str = "GAVEL_BENCH_CHILD";

#[derive(Clone, Copy, PartialEq)]
enum Round {
    ReadFirst,
    WriteOnly,
    Keep,
}

fn main() {
    if std::env::var_os(CHILD).is_some() {
        return run(Round::ReadFirst);
    }
    let cores = std::thread::available_parallelism().unwrap().get();
    let powers = std::iter::successors(Some(1), |count| Some(count * 2)).take_while(|count| *count < cores);
    for count in powers.chain([cores]) {
        measure(count, "threads", libc::RUSAGE_SELF, || threads(count, Round::ReadFirst));
        measure(count, "processes", libc::RUSAGE_CHILDREN, || processes(count));
        measure(count, "threads, not read first", libc::RUSAGE_SELF, || threads(count, Round::WriteOnly));
        measure(count, "threads, pages kept", libc::RUSAGE_SELF, || threads(count, Round::Keep));
    }
}

fn measure(count: usize, name: &str, of: libc::c_int, rounds: impl FnOnce()) {
    let (before, start) = (used(of), Instant::now());
    rounds();
    let (seconds, after, all) = (start.elapsed().as_secs_f64(), used(of), (count * ROUNDS) as f64);
    let [user, kernel, faults] = std::array::from_fn(|at| (after[at] - before[at]) / all);
    println!(
        r#"{{"count": {count}, "of": "{name}", "rounds_per_second": {:.0}, "user_us": {user:.0}, "kernel_us": {kernel:.0}, "page_faults": {faults:.0}}}"#,
        all / seconds
    );
}

fn threads(count: usize, round: Round) {
    std::thread::scope(|scope| (0..count).for_each(|_| drop(scope.spawn(|| run(round)))));
}

fn processes(count: usize) {
    let program = std::env::current_exe().unwrap();
    let children: Vec<_> = (0..count).map(|_| Command::new(&program).env(CHILD, "1").spawn().unwrap()).collect();
    children.into_iter().for_each(|mut child| assert!(child.wait().unwrap().success()));
}

/// Touches pages and restores them, again and again.
fn run(round: Round) {
    let file = tempfile::tempfile_in("/dev/shm").unwrap();
    let image = vec![1; PAGES * PAGE];
    std::io::Write::write_all(&mut &file, &image).unwrap();
    let descriptor = std::os::fd::AsRawFd::as_raw_fd(&file);
    // SAFETY: the kernel chooses the address of the new mapping, and all of its bytes are in the file.
    let memory = unsafe {
        let (protection, private) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_PRIVATE);
        let memory = libc::mmap(std::ptr::null_mut(), image.len(), protection, private, descriptor, 0);
        assert_ne!(memory, libc::MAP_FAILED);
        memory.cast::<u8>()
    };
    for _ in 0..ROUNDS {
        let pages = || (0..PAGES).step_by(STRIDE).map(|page| page * PAGE);
        if round != Round::WriteOnly {
            // SAFETY: it is in the mapping, which only this thread uses.
            pages().for_each(|at| assert_eq!(unsafe { memory.add(at).read_volatile() }, 1));
        }
        // SAFETY: as above.
        pages().for_each(|at| unsafe { memory.add(at).write_volatile(2) });
        match round {
            // SAFETY: as above; `image` is as long.
            Round::Keep => pages().for_each(|at| unsafe {
                memory.add(at).copy_from_nonoverlapping(image.as_ptr().add(at), PAGE);
            }),
            // SAFETY: as above; the next access sees the file again.
            _ => assert_eq!(unsafe { libc::madvise(memory.cast(), image.len(), libc::MADV_DONTNEED) }, 0),
        }
    }
    // SAFETY: the mapping is not used after this.
    unsafe { libc::munmap(memory.cast(), image.len()) };
}

/// Microseconds in the program's code and in the kernel, and page faults.
fn used(of: libc::c_int) -> [f64; 3] {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to a local, which zeros initialise and the call overwrites.
    let usage = unsafe {
        libc::getrusage(of, usage.as_mut_ptr());
        usage.assume_init()
    };
    let micros = |time: libc::timeval| time.tv_sec as f64 * 1e6 + time.tv_usec as f64;
    [micros(usage.ru_utime), micros(usage.ru_stime), usage.ru_minflt as f64]
}
