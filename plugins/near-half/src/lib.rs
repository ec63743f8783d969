//! A sampler that prefers tasks whose success rate is near a half: the policy learns most where some of its attempts
//! succeed and some fail.

use gavel_sdk::sampler::{Answer, EndedGroup, Random, Request, Task};
use gavel_sdk::{Failure, Info, Sampler};
use serde::Deserialize;

/// The bytes of a row in the state: 0 if it was never seen, else its rate from 1 to 65535.
const ROW_BYTES: usize = 2;
/// The most rows whose rates fit into a state.
const MOST_ROWS: u64 = (1 << 20) / ROW_BYTES as u64;
/// The rate of a row before it was seen.
const UNSEEN: f64 = 0.5;
/// The highest rate as it is kept.
const WHOLE: f64 = 65_534.0;

struct NearHalf {
    params: Params,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Params {
    /// The reward of a failure.
    lowest: f64,
    /// The reward of a success.
    highest: f64,
    /// How much a new group changes the rate of its row, from 0 to 1.
    change: f64,
    /// The weight of a row that is always or never solved; of a row that is solved half of the time, it is 1.
    explore: f64,
    /// Groups with a lower success rate are refused.
    refuse_below: f64,
    /// Groups with a higher success rate are refused.
    refuse_above: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { lowest: 0.0, highest: 1.0, change: 0.5, explore: 0.1, refuse_below: 0.0, refuse_above: 1.0 }
    }
}

impl Sampler for NearHalf {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        let Params { lowest, highest, change, explore, refuse_below, refuse_above } = params;
        if !(lowest.is_finite() && highest.is_finite() && lowest < highest) {
            return Err(format!("`lowest` ({lowest}) must be below `highest` ({highest})"));
        }
        if !(change > 0.0 && change <= 1.0) {
            return Err(format!("`change` must be above 0 and at most 1, not {change}"));
        }
        if !(explore > 0.0 && explore <= 1.0) {
            return Err(format!("`explore` must be above 0 and at most 1, not {explore}"));
        }
        if !(0.0..=1.0).contains(&refuse_below) || !(refuse_below..=1.0).contains(&refuse_above) {
            return Err(format!(
                "`refuse_below` ({refuse_below}) and `refuse_above` ({refuse_above}) must be from 0 to 1, in this order"
            ));
        }
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn sample(&self, request: &Request) -> Result<Answer, Failure> {
        let rows = request.rows();
        if rows > MOST_ROWS {
            return Err(Failure::invalid_input(format!(
                "the datasets have {rows} rows, and the rates of at most {MOST_ROWS} are kept"
            )));
        }
        let mut rates = Rates::read(&request.state, rows as usize)?;
        let mut answer = Answer::new(Vec::new());
        for group in &request.ended {
            let Some(success) = self.success(group) else { continue };
            rates.add(request.row(&group.task) as usize, success, self.params.change);
            if success < self.params.refuse_below {
                answer = answer.refuse(group.draw, "too-hard");
            } else if success > self.params.refuse_above {
                answer = answer.refuse(group.draw, "too-easy");
            }
        }
        answer.draws = self.draw(request, &rates);
        Ok(answer.state(rates.0))
    }
}

gavel_sdk::export_sampler!(NearHalf);

impl NearHalf {
    /// The success rate of a group; none without a reward.
    fn success(&self, group: &EndedGroup) -> Option<f64> {
        let Params { lowest, highest, .. } = self.params;
        Some(((group.mean_reward()? - lowest) / (highest - lowest)).clamp(0.0, 1.0))
    }

    /// Rows by their weights, each at most once before all of them were drawn: those with the smallest of exponentially
    /// distributed numbers (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006).
    fn draw(&self, request: &Request, rates: &Rates) -> Vec<Task> {
        let (wanted, mut random) = (request.wanted as usize, Random::new(request.seed));
        let mut draws = Vec::with_capacity(wanted);
        while draws.len() < wanted {
            let mut keys: Vec<(f64, usize)> = (0..rates.len())
                .map(|row| (-(1.0 - random.uniform()).ln() / self.weight(rates.get(row)), row))
                .collect();
            let by_key = |one: &(f64, usize), other: &(f64, usize)| one.0.total_cmp(&other.0);
            let count = keys.len().min(wanted - draws.len());
            if count < keys.len() {
                keys.select_nth_unstable_by(count, by_key);
                keys.truncate(count);
            }
            keys.sort_unstable_by(by_key);
            draws.extend(keys.into_iter().map(|(_, row)| request.task(row as u64)));
        }
        draws
    }

    fn weight(&self, rate: f64) -> f64 {
        let explore = self.params.explore;
        explore + (1.0 - explore) * 4.0 * rate * (1.0 - rate)
    }
}

/// The success rates of all rows.
struct Rates(Vec<u8>);

impl Rates {
    fn read(state: &[u8], rows: usize) -> Result<Self, Failure> {
        match state.len() {
            0 => Ok(Self(vec![0; rows * ROW_BYTES])),
            bytes if bytes == rows * ROW_BYTES => Ok(Self(state.to_vec())),
            _ => Err(Failure::internal("the state is of other datasets")),
        }
    }

    fn len(&self) -> usize {
        self.0.len() / ROW_BYTES
    }

    fn get(&self, row: usize) -> f64 {
        let at = row * ROW_BYTES;
        match u16::from_le_bytes([self.0[at], self.0[at + 1]]) {
            0 => UNSEEN,
            kept => f64::from(kept - 1) / WHOLE,
        }
    }

    fn add(&mut self, row: usize, success: f64, change: f64) {
        let rate = self.get(row) + change * (success - self.get(row));
        let kept = 1 + (rate * WHOLE).round() as u16;
        self.0[row * ROW_BYTES..][..ROW_BYTES].copy_from_slice(&kept.to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gavel_sdk::sampler::Dataset;

    fn request(rows: u64, wanted: u32, seed: u64) -> Request {
        let datasets = vec![Dataset { rows, weight: None }];
        Request { step: 1, seed, datasets, ended: Vec::new(), wanted, next_draw: 0, state: Vec::new() }
    }

    #[test]
    fn rates_move_towards_what_is_seen() {
        let mut rates = Rates::read(&[], 3).unwrap();
        rates.add(1, 1.0, 0.5);
        rates.add(1, 1.0, 0.5);
        rates.add(2, 0.0, 1.0);
        assert!((rates.get(1) - 0.875).abs() < 1e-4 && rates.get(2) == 0.0 && rates.get(0) == UNSEEN);
        assert_eq!(Rates::read(&rates.0, 3).unwrap().0, rates.0);
        assert!(Rates::read(&rates.0, 4).is_err());
    }

    #[test]
    fn rows_are_drawn_by_their_weights_and_each_once() {
        let sampler = NearHalf::new(Params::default()).unwrap();
        let mut rates = Rates::read(&[], 4).unwrap();
        [(0, 0.0), (1, 1.0)].into_iter().for_each(|(row, success)| rates.add(row, success, 1.0));
        let mut counts = [0; 4];
        for seed in 0..4000 {
            sampler.draw(&request(4, 1, seed), &rates).iter().for_each(|task| counts[task.row as usize] += 1);
        }
        // The weights are 0.1, 0.1, 1 and 1.
        assert!((130..235).contains(&counts[0]) && (1700..1940).contains(&counts[2]), "{counts:?}");
        let mut all: Vec<u64> = sampler.draw(&request(4, 6, 3), &rates).iter().map(|task| task.row).collect();
        all[..4].sort_unstable();
        assert_eq!((&all[..4], all.len()), (&[0, 1, 2, 3][..], 6));
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let wrong = |params: Params| NearHalf::new(params).err().unwrap();
        assert!(wrong(Params { highest: 0.0, ..Params::default() }).starts_with("`lowest` (0) must be below"));
        assert!(wrong(Params { change: 0.0, ..Params::default() }).starts_with("`change` must be"));
        assert!(wrong(Params { explore: f64::NAN, ..Params::default() }).starts_with("`explore` must be"));
        assert!(wrong(Params { refuse_above: 0.2, refuse_below: 0.3, ..Params::default() }).contains("in this order"));
    }
}
