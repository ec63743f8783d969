//! Never returns from a request.

use attack::sampler::{Answer, Request};
use attack::{Failure, Info, NoParams, Sampler};

struct Attack;

impl Sampler for Attack {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn sample(&self, request: &Request) -> Result<Answer, Failure> {
        while std::hint::black_box(request.wanted) > 0 {}
        Ok(Answer::new(Vec::new()))
    }
}

attack::export_sampler!(Attack);
