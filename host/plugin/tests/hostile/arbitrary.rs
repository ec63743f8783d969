//! Arbitrary bytes where a component is loaded, and where a plugin answers: a
//! bounded walk that is the same every time.

use crate::{built, ground::Ground, load, sandbox};
use gavel_data::{Blame, Budget, Outcome};
use gavel_plugin::LoadError;

const ANSWERS: u64 = 4000;
const COMPONENTS: u64 = 1000;

/// Numbers that follow from their index.
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

/// The verdict with a few fields replaced by what is likely to be a border.
fn arbitrary_answer(walk: &mut Walk) -> Vec<u8> {
    let mut bytes = verdict().to_vec();
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

    let (mut walk, mut scored) = (Walk(1), 0);
    for index in 0..ANSWERS {
        let answer = arbitrary_answer(&mut walk);
        let outcome = plugin.score(&ground.sample(&as_letters(&answer)), 1).await.outcome;
        match &outcome {
            Outcome::Scored(score) => {
                assert!(score.value.is_finite() && score.metrics.len() <= 64, "answer {index}: {outcome:?}");
                scored += 1;
            }
            Outcome::Abstained(_) | Outcome::Unavailable(_) => {}
            Outcome::Fault { whose: Blame::Plugin | Blame::Input, .. } => {}
            Outcome::OutOfBudget { which: Budget::Output, .. } => {}
            _ => panic!("answer {index}, {answer:?}, is {outcome:?}"),
        }
    }
    assert!((1..ANSWERS).contains(&scored), "{scored} of {ANSWERS} arbitrary answers are scores");
}

#[tokio::test]
async fn an_arbitrary_component_loads_or_says_why_not() {
    let (folder, sandbox) = (tempfile::tempdir().unwrap(), sandbox());
    let (whole, path) = (std::fs::read(built("hostile/raw-control")).unwrap(), folder.path().join("arbitrary.wasm"));
    let (mut walk, mut invalid) = (Walk(2), 0);
    for index in 0..COMPONENTS {
        let mut bytes = whole.clone();
        for _ in 0..=walk.below(3) {
            let at = walk.below(bytes.len());
            match walk.below(4) {
                0 => bytes[at] ^= 1 << walk.below(8),
                1 => bytes[at] = walk.next() as u8,
                2 => bytes.insert(at, walk.next() as u8),
                _ => drop(bytes.remove(at)),
            }
        }
        std::fs::write(&path, &bytes).unwrap();
        match load(&sandbox, &path).await {
            Ok(_) => {}
            Err(LoadError::Engine(what)) => panic!("component {index}: {what}"),
            Err(_) => invalid += 1,
        }
    }
    assert!((1..COMPONENTS).contains(&invalid), "{invalid} of {COMPONENTS} arbitrary components do not load");
}
