//! The stacks of all threads of this process, for a person who asks why a run stands still.
//!
//! A signal interrupts each thread, one after another, and its handler copies the thread's registers and stack. The copy
//! is unwound afterwards, where any function may be called.

mod copy;
mod libraries;

pub use copy::prepare;

use copy::Copy;
use framehop::{CacheNative, MayAllocateDuringUnwind, Unwinder, UnwinderNative};
use libraries::{Library, MappedFile};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

type Native<'a> = UnwinderNative<&'a [u8], MayAllocateDuringUnwind>;

/// How long all threads may take until their stacks are known.
const PATIENCE: Duration = Duration::from_secs(5);

/// The innermost frames of a stack, which are shown.
const MOST_FRAMES: usize = 192;

/// The stacks of all threads but this one, with names of functions where they are known. Threads with equal stacks are
/// together, in the order of their numbers. Threads ask for it one at a time.
pub fn text() -> String {
    let until = Instant::now() + PATIENCE;
    let copies: Vec<(String, Option<Copy>)> =
        threads().into_iter().filter_map(|thread| copy_of(thread, until)).collect();
    let count = copies.len();
    let files = MappedFile::all();
    let libraries: Vec<Library<'_>> = files.iter().filter_map(Library::of).collect();
    let mut unwinder = Native::new();
    libraries.iter().for_each(|library| unwinder.add_module(library.module()));
    let mut cache = CacheNative::new();
    // In the order of the first thread of each.
    let mut stacks: Vec<(Option<Vec<u64>>, Vec<String>)> = Vec::new();
    for (thread, copy) in copies {
        let frames = copy.map(|copy| unwind(&copy, &unwinder, &mut cache));
        match stacks.iter_mut().find(|(other, _)| *other == frames) {
            Some((_, threads)) => threads.push(thread),
            None => stacks.push((frames, vec![thread])),
        }
    }
    let names = names(&stacks, &libraries);
    let mut text = format!("the stacks of {count} threads");
    for (frames, threads) in stacks {
        // Writing to a string does not fail.
        let _ = write!(text, "\n  {}", threads.join(", "));
        match frames {
            None => text.push_str(": no answer"),
            Some(frames) => frames.iter().for_each(|frame| {
                let _ = write!(text, "\n    {}", names[frame]);
            }),
        }
    }
    text
}

/// A thread's name with its number, and its stack; nothing of a thread that has ended.
fn copy_of((number, name): (i32, String), until: Instant) -> Option<(String, Option<Copy>)> {
    let copy = Copy::of_thread(number, until);
    let is_there = copy.is_some() || Path::new(&format!("/proc/self/task/{number}")).exists();
    is_there.then(|| (format!("{name} ({number})"), copy))
}

/// The threads of this process but this one, and their names, in the order of their numbers.
fn threads() -> Vec<(i32, String)> {
    // SAFETY: the function has no conditions.
    let own = unsafe { libc::gettid() };
    let Ok(entries) = std::fs::read_dir("/proc/self/task") else { return Vec::new() };
    let threads = entries.filter_map(|entry| {
        let folder = entry.ok()?.path();
        let thread = folder.file_name()?.to_str()?.parse().ok()?;
        let name = std::fs::read_to_string(folder.join("comm")).ok()?;
        (thread != own).then(|| (thread, name.trim().to_owned()))
    });
    let mut threads: Vec<_> = threads.collect();
    threads.sort();
    threads
}

/// The frames of a stack, the innermost first, each as an address within its call.
fn unwind(copy: &Copy, unwinder: &Native<'_>, cache: &mut CacheNative<MayAllocateDuringUnwind>) -> Vec<u64> {
    let mut read = |address| copy.word(address).ok_or(());
    let mut frames = unwinder.iter_frames(copy.instruction(), copy.registers(), cache, &mut read);
    let mut addresses = Vec::new();
    // A stack that cannot be followed further ends there.
    while let (true, Ok(Some(frame))) = (addresses.len() < MOST_FRAMES, frames.next()) {
        addresses.push(frame.address_for_lookup());
    }
    addresses
}

/// What the frames of all stacks are called.
fn names(stacks: &[(Option<Vec<u64>>, Vec<String>)], libraries: &[Library<'_>]) -> BTreeMap<u64, String> {
    let addresses: BTreeSet<u64> = stacks.iter().filter_map(|(frames, _)| frames.as_ref()).flatten().copied().collect();
    // Code that was made in this process, as a plugin's is.
    let mut names: BTreeMap<u64, String> =
        addresses.iter().map(|it| (*it, format!("{it:#x}, compiled code"))).collect();
    for library in libraries {
        names.extend(library.names(&addresses));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Receiver, channel};

    #[inline(never)]
    fn stands_still(until: &Receiver<()>) {
        let _ = until.recv();
        // Not the last call, which would leave no frame.
        std::hint::black_box(until);
    }

    #[test]
    fn a_thread_that_stands_still_is_named_with_what_it_calls() {
        prepare().unwrap();
        let (go_on, until) = channel();
        let (send, id) = channel();
        let waits = move || {
            // SAFETY: the function has no conditions.
            send.send(unsafe { libc::gettid() }).unwrap();
            stands_still(&until);
        };
        let thread = std::thread::Builder::new().name("stands-still".to_owned()).spawn(waits).unwrap();
        let id = id.recv().unwrap();
        let of_thread = || {
            let text = text();
            let lines = text.lines().skip_while(|line| !line.contains(&format!("stands-still ({id})")));
            lines.skip(1).take_while(|line| line.starts_with("    ")).map(str::to_owned).collect::<Vec<_>>()
        };
        // It may not have come there yet, and a busy machine may not let it answer.
        let mut stacks = std::iter::repeat_with(of_thread).take(1000);
        let stack = stacks.find(|stack| stack.iter().any(|frame| frame.contains("stands_still")));
        let stack = stack.unwrap_or_else(|| panic!("{}", text()));
        // It is followed to its first call, which is in the C library.
        assert!(stack.last().unwrap().contains("libc.so"), "{stack:#?}");
        go_on.send(()).unwrap();
        thread.join().unwrap();
        assert!(Copy::of_thread(id, Instant::now() + PATIENCE).is_none(), "it has ended");
    }
}
