//! A dataset of sums of two numbers.

use gavel_sdk::{Failure, Info, Taskset};
use serde_json::{Map, Value, json};

/// The dataset, with its parameters checked.
struct Sums {
    params: Params,
}

/// What a run may say in the dataset's name, such as `plugin:{{name}}.wasm?digits=3`.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Params {
    /// Digits of each number, at most.
    digits: u32,
    /// How many rows there are.
    length: u64,
}

impl Default for Params {
    fn default() -> Self {
        Self { digits: 2, length: 1000 }
    }
}

impl Taskset for Sums {
    type Params = Params;

    // Once, before any row; an error stops a run before it starts.
    fn new(params: Params) -> Result<Self, String> {
        if !(1..=9).contains(&params.digits) {
            return Err(format!("`digits` must be from 1 to 9, not {}", params.digits));
        }
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    // None where the rows never end.
    fn len(&self) -> Option<u64> {
        Some(self.params.length)
    }

    // Once a row: the same index and seed give the same row.
    fn get(&self, index: u64, seed: u64) -> Result<Map<String, Value>, Failure> {
        if index >= self.params.length {
            return Err(Failure::invalid_input(format!("there is no row {index}: there are {}", self.params.length)));
        }
        let (a, b) = two_numbers(index, seed, 10u64.pow(self.params.digits));
        let mut row = Map::new();
        row.insert("prompt".into(), json!(format!("What is {a} + {b}? End with \"Answer:\" and the sum.")));
        row.insert("ground_truth".into(), json!((a + b).to_string()));
        Ok(row)
    }
}

gavel_sdk::export_taskset!(Sums);

/// Two numbers below `limit` that follow from the index and the seed (SplitMix64).
fn two_numbers(index: u64, seed: u64, limit: u64) -> (u64, u64) {
    let mut bits = seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    ((bits >> 32) % limit, (bits & 0xffff_ffff) % limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_follows_from_its_index_and_the_seed() {
        let row = |index, seed| Sums::new(Params::default()).unwrap().get(index, seed).unwrap();
        assert_eq!(row(3, 1), row(3, 1));
        assert_ne!(row(3, 1), row(4, 1));
        assert_ne!(row(3, 1), row(3, 2));
    }

    #[test]
    fn ten_digits_are_refused() {
        assert!(Sums::new(Params { digits: 10, ..Params::default() }).is_err());
    }
}
