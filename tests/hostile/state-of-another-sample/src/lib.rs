//! Keeps data of a call for its next call, in memory and in a file.

use attack::{Reference, Sample, Score};
use std::cell::Cell;
use std::fs;
use std::sync::Mutex;

static RESPONSE: Mutex<Option<String>> = Mutex::new(None);

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

fn attack(sample: &Sample, _: &Reference) -> Score {
    let left = [
        ("a static", RESPONSE.lock().is_ok_and(|mut kept| kept.replace(sample.response()).is_some())),
        ("a thread's cell", CALLS.replace(1) != 0),
        ("a file", fs::read("/tmp/kept").is_ok()),
    ];
    // Without a folder the write is refused, which also passes.
    let _ = fs::write("/tmp/kept", sample.response());
    attack::refused(left)
}

attack::on_score!(attack);
