//! Arbitrary bytes where a component is loaded, and where a plugin answers: the
//! corpus in `tests/corpus`, and a walk from it that is bounded and the same
//! every time. `GAVEL_FUZZ_SECONDS=600` continues with other walks for that time.
//! Inputs that fail are kept in `target/fuzz`, to be added to the corpus.

use crate::{built, ground::Ground, load, sandbox};
use gavel_data::{Blame, Budget, Outcome};
use gavel_plugin::LoadError;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const ANSWERS: u64 = 4000;
const COMPONENTS: u64 = 1000;

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of a folder of the corpus, in the order of their names.
fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = repository().join("tests/corpus").join(name);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(!paths.is_empty(), "the corpus {name} is empty");
    paths.iter().map(|path| std::fs::read(path).unwrap()).collect()
}

/// Whether the walk continues: always for `bounded` steps, and longer where time is given.
fn goes_on(index: u64, bounded: u64, since: Instant) -> bool {
    let seconds = std::env::var("GAVEL_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok()).unwrap_or(0);
    index < bounded || since.elapsed() < Duration::from_secs(seconds)
}

/// Keeps an input that the host did not handle as it should.
fn fail(input: &[u8], what: &str) -> ! {
    let folder = repository().join("target/fuzz");
    std::fs::create_dir_all(&folder).unwrap();
    let path = folder.join(blake3::hash(input).to_hex().as_str());
    std::fs::write(&path, input).unwrap();
    panic!("{what}; the input is in {}: add it to tests/corpus", path.display())
}

/// Pseudo-random numbers from a seed.
struct Walk(u64);

impl Walk {
    fn next(&mut self) -> u64 {
        // SplitMix64, https://prng.di.unimi.it/splitmix64.c
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// An honest verdict in the layout of `tests/hostile/reward.wat`.
fn verdict() -> [u8; 56] {
    let mut bytes = [0; 56];
    bytes[16..24].copy_from_slice(&1.0_f64.to_le_bytes());
    bytes
}

/// An answer of the corpus with a few fields replaced by likely edge cases.
fn arbitrary_answer(walk: &mut Walk, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = corpus[walk.below(corpus.len())].clone();
    bytes.resize(verdict().len(), 0);
    for _ in 0..=walk.below(4) {
        let borders = [0, 1, 2, 3, 7, 256, 300, 65_535, 65_536, 0x7fff_ffff, 0xffff_ffff, walk.next() as u32];
        let (at, value) = (4 * walk.below(14), borders[walk.below(borders.len())]);
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
    }
    bytes
}

fn as_letters(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [b'a' + (byte >> 4), b'a' + (byte & 15)]).map(char::from).collect()
}

#[tokio::test]
async fn an_arbitrary_answer_is_a_verdict_or_the_plugins_fault() {
    let (ground, sandbox) = (Ground::new(), sandbox());
    let plugin = load(&sandbox, &built("hostile/arbitrary-answer")).await.unwrap();
    let control = plugin.score(&ground.sample(&as_letters(&verdict())), 1).await.outcome;
    assert_eq!(control.score(), Some(1.0), "{control:?}");

    let (answers, start, mut walk) = (corpus("answers"), Instant::now(), Walk(1));
    let (mut index, mut scored) = (0, 0);
    while goes_on(index, ANSWERS, start) {
        // The corpus as it is comes first.
        let answer = match answers.get(index as usize) {
            Some(answer) => answer.clone(),
            None => arbitrary_answer(&mut walk, &answers),
        };
        let outcome = plugin.score(&ground.sample(&as_letters(&answer)), 1).await.outcome;
        match &outcome {
            Outcome::Scored(score) if score.value.is_finite() && score.metrics.len() <= 64 => scored += 1,
            Outcome::Abstained(_) | Outcome::Unavailable(_) => {}
            Outcome::Fault { whose: Blame::Plugin | Blame::Input, .. } => {}
            Outcome::OutOfBudget { which: Budget::Output, .. } => {}
            _ => fail(&answer, &format!("answer {index} is {outcome:?}")),
        }
        index += 1;
    }
    assert!((1..index).contains(&scored), "{scored} of {index} arbitrary answers are scores");
}

#[tokio::test]
async fn an_arbitrary_component_loads_or_says_why_not() {
    let (folder, sandbox) = (tempfile::tempdir().unwrap(), sandbox());
    let path = folder.path().join("arbitrary.wasm");
    let (mut components, start, mut walk) = (corpus("components"), Instant::now(), Walk(2));
    components.push(std::fs::read(built("hostile/raw-control")).unwrap());
    let (mut index, mut invalid) = (0, 0);
    while goes_on(index, COMPONENTS, start) {
        let bytes = match components.get(index as usize) {
            Some(component) => component.clone(),
            None => arbitrary_component(&mut walk, &components),
        };
        std::fs::write(&path, &bytes).unwrap();
        match load(&sandbox, &path).await {
            Ok(_) => {}
            Err(LoadError::Engine(what)) => fail(&bytes, &format!("component {index}: {what}")),
            Err(_) => invalid += 1,
        }
        index += 1;
    }
    assert!((1..index).contains(&invalid), "{invalid} of {index} arbitrary components do not load");
}

/// A component of the corpus with a few bytes changed, inserted or removed.
fn arbitrary_component(walk: &mut Walk, corpus: &[Vec<u8>]) -> Vec<u8> {
    // The last one is whole, and has the most to break.
    let start = if walk.below(4) == 0 { walk.below(corpus.len()) } else { corpus.len() - 1 };
    let mut bytes = corpus[start].clone();
    for _ in 0..=walk.below(3) {
        let at = walk.below(bytes.len().max(1)).min(bytes.len());
        match walk.below(4) {
            _ if at == bytes.len() => bytes.push(walk.next() as u8),
            0 => bytes[at] ^= 1 << walk.below(8),
            1 => bytes[at] = walk.next() as u8,
            2 => bytes.insert(at, walk.next() as u8),
            _ => drop(bytes.remove(at)),
        }
    }
    bytes
}
