//! The processes that a program started, also those that left its process group.

#[cfg(target_os = "linux")]
use std::collections::BTreeSet;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;

/// A variable by which the processes of one program are found.
#[derive(Debug, Clone)]
pub(crate) struct Mark {
    pub(crate) variable: &'static str,
    pub(crate) value: String,
}

impl Mark {
    pub(crate) fn new(variable: &'static str) -> Self {
        // It is random, so that no process of another program has it.
        let value = format!("{}-{:016x}", std::process::id(), RandomState::new().hash_one(0));
        Self { variable, value }
    }
}

/// Kills the descendants of the process `root`, but not itself, and all processes with this mark: a process whose parent
/// has ended descends from nothing.
#[cfg(target_os = "linux")]
pub(crate) fn kill(root: i32, mark: &Mark) {
    /// One of them may start another before it is killed. A program that is faster than this is not waited for.
    const MOST_ROUNDS: usize = 100;
    let (mut killed, mut before) = (BTreeSet::new(), None);
    for _ in 0..MOST_ROUNDS {
        if before.replace(killed.len()) == Some(killed.len()) {
            return;
        }
        linux::kill_found(root, mark, &mut killed);
    }
}

/// Only Linux has a folder of all processes.
#[cfg(not(target_os = "linux"))]
pub(crate) fn kill(_root: i32, _mark: &Mark) {}

#[cfg(target_os = "linux")]
mod linux {
    use super::Mark;
    use std::collections::{BTreeMap, BTreeSet};
    use std::fs::{read, read_dir, read_to_string};
    use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

    /// A process that has not ended.
    struct Found {
        parent: i32,
        /// When it began: another process with its number began later.
        start: u64,
        is_marked: bool,
    }

    /// Kills all that are there now, and notes their numbers.
    pub(super) fn kill_found(root: i32, mark: &Mark, killed: &mut BTreeSet<i32>) {
        let mark = format!("{}={}", mark.variable, mark.value).into_bytes();
        let pids = read_dir("/proc").into_iter().flatten().flatten();
        let pids = pids.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let all: BTreeMap<i32, Found> = pids.filter_map(|pid| Some((pid, find(pid, &mark)?))).collect();
        for (pid, found) in &all {
            if *pid != root && (found.is_marked || descends(found, root, &all)) && kill(*pid, found.start) {
                killed.insert(*pid);
            }
        }
    }

    fn find(pid: i32, mark: &[u8]) -> Option<Found> {
        let (parent, start) = stat(pid)?;
        let environment = read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let is_marked = environment.split(|byte| *byte == 0).any(|variable| variable == mark);
        Some(Found { parent, start, is_marked })
    }

    /// The parent of a process that has not ended, and when the process began.
    fn stat(pid: i32) -> Option<(i32, u64)> {
        let stat = read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name, in brackets, may have any characters. `man 5 proc_pid_stat` numbers the fields.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3).copied();
        (field(3)? != "Z").then_some((field(4)?.parse().ok()?, field(22)?.parse().ok()?))
    }

    fn descends(found: &Found, root: i32, all: &BTreeMap<i32, Found>) -> bool {
        let mut line = std::iter::successors(Some(found), |each| all.get(&each.parent)).take(all.len());
        line.any(|each| each.parent == root)
    }

    /// Kills the process that began then. Returns whether there was one.
    fn kill(pid: i32, start: u64) -> bool {
        // SAFETY: the call takes plain integers. It returns a new descriptor that nothing else owns.
        let process = unsafe {
            let descriptor = libc::syscall(libc::SYS_pidfd_open, pid, 0);
            match i32::try_from(descriptor) {
                Ok(descriptor @ 0..) => OwnedFd::from_raw_fd(descriptor),
                _ => return false,
            }
        };
        // From here on, another process with this number does not get the signal.
        if stat(pid).is_none_or(|(_, now)| now != start) {
            return false;
        }
        let information = std::ptr::null::<libc::siginfo_t>();
        // SAFETY: it only sends a signal, to the process of an open descriptor.
        unsafe { libc::syscall(libc::SYS_pidfd_send_signal, process.as_raw_fd(), libc::SIGKILL, information, 0) == 0 }
    }
}
