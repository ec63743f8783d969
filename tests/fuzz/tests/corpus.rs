//! Reads every input in `tests/corpus`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::print_stdout, reason = "the last path that a failed test prints is the input that failed")]

use gavel_fuzz::{COMPONENTS, RECORDINGS, REQUESTS, RESPONSES, ROWS, Target};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Longer than any input takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

fn replay(target: &Target) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpus").join(target.name);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let (mut taken, mut refused) = (0, 0);
    for path in paths {
        // Printed before, so that a failure shows its input.
        println!("{}", path.display());
        let (input, start) = (std::fs::read(&path).unwrap(), Instant::now());
        match target.check(&input) {
            true => taken += 1,
            false => refused += 1,
        }
        assert!(start.elapsed() < PATIENCE, "{} took {:?}", path.display(), start.elapsed());
    }
    // A target that accepts no input, or every input, tests little.
    assert!(taken > 0 && refused > 0, "{}: {taken} taken, {refused} refused", target.name);
}

#[test]
fn components() {
    replay(&COMPONENTS);
}

#[test]
fn rows() {
    replay(&ROWS);
}

#[test]
fn responses() {
    replay(&RESPONSES);
}

#[test]
fn requests() {
    replay(&REQUESTS);
}

#[test]
fn recordings() {
    replay(&RECORDINGS);
}
