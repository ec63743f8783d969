//! A sampler. `in-order` draws the rows as the files have them. `hashes` draws rows that follow from all that it was ever
//! asked: a run that repeats its draws has asked the same, in the same order. `refuses` also refuses each third draw, and
//! `makes-up` each draw, with a reason of its own. `one-row` draws one row for ever, `beyond` draws a row that does not
//! exist from the second step on, and `fails` always does.

use gavel_sdk::sampler::{Answer, Random, Request};
use gavel_sdk::{Failure, Info, Sampler};

struct Draws {
    params: Params,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    how: How,
}

#[derive(Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum How {
    InOrder,
    Hashes,
    Refuses,
    MakesUp,
    OneRow,
    Beyond,
    Fails,
}

impl Sampler for Draws {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn sample(&self, request: &Request) -> Result<Answer, Failure> {
        let how = self.params.how;
        let hash = hash(request)?;
        let mut random = Random::new(hash ^ request.seed);
        let draws = (0..u64::from(request.wanted)).map(|number| match how {
            How::InOrder => request.task((request.next_draw + number) % request.rows()),
            How::Fails => request.task(request.rows()),
            How::Beyond if request.step > 1 => request.task(request.rows()),
            How::OneRow => request.task(1),
            How::Hashes | How::Refuses | How::MakesUp | How::Beyond => request.task(random.below(request.rows())),
        });
        let answer = Answer::new(draws.collect()).state(hash.to_le_bytes());
        Ok(request.ended.iter().fold(answer, |answer, group| match how {
            How::Refuses if group.draw % 3 == 0 => answer.refuse(group.draw, "third"),
            How::MakesUp => answer.refuse(group.draw, format!("draw-{}", group.draw)),
            _ => answer,
        }))
    }
}

gavel_sdk::export_sampler!(Draws);

/// A number that follows from the state, which is the last such number, and from the request.
fn hash(request: &Request) -> Result<u64, Failure> {
    let state = match &*request.state {
        [] => 0,
        state => u64::from_le_bytes(state.try_into().map_err(|_| Failure::internal("the state is not its own"))?),
    };
    let of_request = [request.step, request.seed, request.next_draw, u64::from(request.wanted), request.rows()];
    let of_groups = request.ended.iter().flat_map(|group| {
        let rewards = group.samples.iter().map(|sample| sample.reward.map_or(1, f64::to_bits));
        let metrics = group.samples.iter().flat_map(|sample| &sample.metrics).map(|metric| metric.value.to_bits());
        [group.draw, request.row(&group.task), group.version].into_iter().chain(rewards).chain(metrics)
    });
    let numbers = of_request.into_iter().chain(of_groups);
    Ok(numbers.fold(state, |hash, number| Random::new(hash ^ Random::new(number).bits()).bits()))
}
