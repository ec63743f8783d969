//! Scores at random, so that verdicts would not repeat.

use attack::{Reference, Sample, Score};
use std::hash::{BuildHasher, RandomState};
use wasip2::random::{insecure, insecure_seed, random};

fn attack(_: &Sample, _: &Reference) -> Score {
    let numbers = [
        random::get_random_u64(),
        insecure::get_insecure_random_u64(),
        insecure_seed::insecure_seed().0,
        RandomState::new().hash_one(0),
    ];
    Score::new((numbers[0] >> 12) as f64).note(format!("{numbers:?} {:?}", random::get_random_bytes(600)))
}

attack::on_score!(attack);
