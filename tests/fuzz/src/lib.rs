//! The readers of untrusted bytes, a target each: components, rows, responses
//! of a language model's server, requests of a client, recordings.
//!
//! A [`Target`] takes any input. It must not panic, must not hang, and must stay below its memory limit. A value that
//! it has read must be the same after it is written and read again. `tests/fuzz/run` looks for inputs that break this;
//! `tests/corpus.rs` replays those that are kept.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod components;
mod memory;
mod recordings;
mod requests;
mod responses;
mod rows;

use std::panic::{PanicHookInfo, set_hook, take_hook};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, Once, PoisonError};

/// A reader, under any input.
pub struct Target {
    /// The folder of its corpus, in `tests/corpus`.
    pub name: &'static str,
    /// Reads an input; gives whether it was accepted.
    read: fn(&[u8]) -> bool,
    /// The most bytes of heap for an input of 64 KiB.
    memory: usize,
}

/// A component, as bytes or as text, from its file to its first call.
pub const COMPONENTS: Target = Target { name: "components", read: components::read, memory: 512 << 20 };
/// A dataset's file, from its rows to the records of samples. The header of a page of Parquet may claim 2 GiB, for which
/// the `parquet` crate reserves addresses before it looks at what there is.
pub const ROWS: Target = Target { name: "rows", read: rows::read, memory: (2 << 30) + (256 << 20) };
/// The answer of an endpoint to a plugin: all bytes of an HTTP response.
pub const RESPONSES: Target = Target { name: "responses", read: responses::read, memory: 64 << 20 };
/// The messages and tools that a client of `gavel serve` sends, to the tokens of the prompt.
pub const REQUESTS: Target = Target { name: "requests", read: requests::read, memory: 64 << 20 };
/// The files of a recording.
pub const RECORDINGS: Target = Target { name: "recordings", read: recordings::read, memory: 2 << 30 };

/// Panics that the host does not catch on purpose.
static PANICS: AtomicUsize = AtomicUsize::new(0);
/// Memory is counted for the whole process.
static ALONE: Mutex<()> = Mutex::new(());

impl Target {
    /// Reads an input; gives whether it was accepted.
    ///
    /// # Panics
    /// A requirement of the target is broken.
    pub fn check(&self, input: &[u8]) -> bool {
        static HOOK: Once = Once::new();
        let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        HOOK.call_once(watch_panics);
        PANICS.store(0, Ordering::SeqCst);
        let (taken, most) = memory::most_of(|| (self.read)(input));
        assert_eq!(PANICS.load(Ordering::SeqCst), 0, "a thread panicked; its message is above");
        assert!(most <= self.memory, "{} bytes of input took {most} bytes of memory", input.len());
        taken
    }
}

/// Counts the panics of all threads. libFuzzer's own hook ends the process,
/// except at panics that the host expects.
fn watch_panics() {
    let report = take_hook();
    set_hook(Box::new(move |panic| {
        if !is_caught(panic) {
            PANICS.fetch_add(1, Ordering::SeqCst);
            report(panic);
        }
    }));
}

/// Whether it is in one of the libraries whose panics the host catches: they
/// assert conditions on their input instead of checking them.
fn is_caught(panic: &PanicHookInfo<'_>) -> bool {
    let file = panic.location().map(|place| place.file()).unwrap_or_default();
    ["/wasmtime-wizer-", "/minijinja-", "/parquet-", "/arrow-", "/bytes-"].iter().any(|library| file.contains(library))
}
