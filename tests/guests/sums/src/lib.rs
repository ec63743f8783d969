//! A taskset: sums of the row's index and a number that follows from the seed.
//! Row 13 is an error, and row 14 panics.

use gavel_sdk::{Failure, Info, Taskset};
use serde_json::{Map, Value, json};

struct Sums {
    params: Params,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    /// The number of rows; without it they never end.
    length: Option<u64>,
    /// Additional bytes of each row.
    #[serde(default)]
    padding: usize,
    #[serde(default)]
    source: String,
}

impl Taskset for Sums {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn len(&self) -> Option<u64> {
        self.params.length
    }

    fn get(&self, index: u64, seed: u64) -> Result<Map<String, Value>, Failure> {
        let other = seed % 100;
        let mut row = Map::new();
        match index {
            13 => return Err(Failure::invalid_input("13 is not summed")),
            14 => panic!("14 brings this taskset down"),
            _ => row.insert("prompt".into(), json!(format!("{index} + {other}?"))),
        };
        row.insert("answer".into(), json!(index + other));
        row.insert("data_source".into(), json!(self.params.source));
        if self.params.padding > 0 {
            row.insert("padding".into(), "x".repeat(self.params.padding).into());
        }
        Ok(row)
    }
}

gavel_sdk::export_taskset!(Sums);
