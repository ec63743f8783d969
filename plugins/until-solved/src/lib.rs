//! A sampler that draws each task until it is solved so many times. Once all are, it begins again.

use gavel_sdk::sampler::{Answer, EndedGroup, Request};
use gavel_sdk::{Failure, Info, Sampler};
use row_order::shuffled;
use serde::Deserialize;

/// The bytes of a state before the rows: the seed of the order, and the position in it.
const HEAD: usize = 16;
/// The most rows that fit into a state, a byte each.
const MOST_ROWS: u64 = (1 << 20) - HEAD as u64;

struct UntilSolved {
    params: Params,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Params {
    /// How many groups must solve a task.
    times: u8,
    /// The reward from which a sample has solved it.
    reward: f64,
    /// The share of a group's samples that must have solved it.
    share: f64,
}

impl Default for Params {
    fn default() -> Self {
        Self { times: 1, reward: 1.0, share: 1.0 }
    }
}

impl Sampler for UntilSolved {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        let Params { times, reward, share } = params;
        if times == 0 {
            return Err("`times` must be from 1 to 255, not 0".to_owned());
        }
        if !reward.is_finite() {
            return Err(format!("`reward` must be a finite number, not {reward}"));
        }
        if !(share > 0.0 && share <= 1.0) {
            return Err(format!("`share` must be above 0 and at most 1, not {share}"));
        }
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn sample(&self, request: &Request) -> Result<Answer, Failure> {
        let mut walk = Walk::read(request)?;
        for group in request.ended.iter().filter(|group| self.is_solved(group)) {
            let times = &mut walk.solved[request.row(&group.task) as usize];
            *times = times.saturating_add(1);
        }
        let rows = walk.draw(request.wanted as usize, self.params.times);
        let draws = rows.into_iter().map(|row| request.task(row)).collect();
        Ok(Answer::new(draws).state(walk.written()))
    }
}

gavel_sdk::export_sampler!(UntilSolved);

impl UntilSolved {
    fn is_solved(&self, group: &EndedGroup) -> bool {
        let is_solved = |reward: Option<f64>| reward.is_some_and(|reward| reward >= self.params.reward);
        let solved = group.samples.iter().filter(|sample| is_solved(sample.reward)).count();
        !group.samples.is_empty() && solved as f64 >= self.params.share * group.samples.len() as f64
    }
}

/// A walk over the rows, epoch after epoch, each in another order.
struct Walk {
    seed: u64,
    position: u64,
    /// How often each row was solved.
    solved: Vec<u8>,
}

impl Walk {
    fn read(request: &Request) -> Result<Self, Failure> {
        let rows = request.rows();
        if rows > MOST_ROWS {
            return Err(Failure::invalid_input(format!(
                "the datasets have {rows} rows, and the counts of at most {MOST_ROWS} are kept"
            )));
        }
        if request.state.is_empty() {
            return Ok(Self { seed: request.seed, position: 0, solved: vec![0; rows as usize] });
        }
        let head = request.state.split_first_chunk().and_then(|(seed, rest)| Some((seed, rest.split_first_chunk()?)));
        match head {
            Some((seed, (position, solved))) if solved.len() as u64 == rows => Ok(Self {
                seed: u64::from_le_bytes(*seed),
                position: u64::from_le_bytes(*position),
                solved: solved.to_vec(),
            }),
            _ => Err(Failure::internal("the state is of other datasets")),
        }
    }

    fn written(&self) -> Vec<u8> {
        [&self.seed.to_le_bytes(), &self.position.to_le_bytes(), &*self.solved].concat()
    }

    /// The next rows that were solved fewer times than `times`.
    fn draw(&mut self, wanted: usize, times: u8) -> Vec<u64> {
        let rows = self.solved.len() as u64;
        if self.solved.iter().all(|solved| *solved >= times) {
            self.solved.fill(0);
        }
        let mut draws = Vec::with_capacity(wanted);
        // From the middle of an epoch, twice as many positions as rows have a whole epoch, and so each row.
        for _ in 0..2 * rows {
            if draws.len() == wanted {
                return draws;
            }
            let row = shuffled(self.seed, self.position / rows, rows, self.position % rows);
            self.position += 1;
            if self.solved[row as usize] < times {
                draws.push(row);
            }
        }
        let unsolved = draws.len();
        (draws.len()..wanted).for_each(|number| draws.push(draws[number % unsolved]));
        draws
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn walk(solved: &[u8]) -> Walk {
        Walk { seed: 7, position: 0, solved: solved.to_vec() }
    }

    #[test]
    fn only_unsolved_rows_are_drawn_each_once_an_epoch() {
        let mut walk = walk(&[0, 2, 1, 3, 0]);
        let mut epoch = walk.draw(3, 2);
        epoch.sort_unstable();
        assert_eq!(epoch, [0, 2, 4]);
        // In the middle of an epoch, more are wanted than there are.
        let many = walk.draw(16, 2);
        assert!(many.len() == 16 && many.iter().all(|row| [0, 2, 4].contains(row)), "{many:?}");
        assert!([0, 2, 4].iter().all(|row| many.contains(row)), "{many:?}");
    }

    #[test]
    fn the_last_unsolved_row_is_found_from_any_position() {
        for position in 0..50 {
            for row in 0..5 {
                let mut walk = Walk { position, ..walk(&[1; 5]) };
                walk.solved[row] = 0;
                assert_eq!(walk.draw(2, 1), [row as u64; 2], "from {position}");
            }
        }
    }

    #[test]
    fn once_all_are_solved_it_begins_again() {
        let mut walk = walk(&[1, 1]);
        assert_eq!(walk.draw(2, 1).len(), 2);
        assert_eq!(walk.solved, [0, 0]);
    }

    #[test]
    fn parameters_out_of_range_are_refused() {
        let wrong = |params: Params| UntilSolved::new(params).err().unwrap();
        assert!(wrong(Params { times: 0, ..Params::default() }).starts_with("`times` must be"));
        assert!(wrong(Params { share: 1.5, ..Params::default() }).starts_with("`share` must be"));
        assert!(wrong(Params { reward: f64::NAN, ..Params::default() }).starts_with("`reward` must be"));
    }
}
