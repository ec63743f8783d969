//! The log-probabilities and entropies of tokens with their gradients: as one operation, and as operations of libtorch,
//! by turns. On the CPU, with 2 threads. Prints one line of JSON for each size of the vocabulary: the median times of
//! both in milliseconds, and their ratio.
//!
//! `cargo bench --workspace --bench head`, on an idle machine.
#![allow(clippy::print_stdout)]

use gavel_torch::head::{Beside, Logits, token_logprobs};
use std::time::Instant;
use tch::{Device, Kind, TchError, Tensor};

/// Tokens whose logits exist at once.
const TOKENS: i64 = 256;
const WIDTH: i64 = 256;
const ROUNDS: usize = 9;

fn main() -> Result<(), TchError> {
    tch::set_num_threads(2);
    for vocab in [4096, 32_768, 131_072] {
        let random = |shape: [i64; 2]| -> Result<Tensor, TchError> {
            let numbers = Tensor::f_randn(shape, (Kind::Float, Device::Cpu))?;
            numbers.f_mul(&Tensor::from(0.2f32))?.f_set_requires_grad(true)
        };
        let (hidden, head) = (random([TOKENS, WIDTH])?, random([vocab, WIDTH])?);
        let targets = Tensor::f_randint(vocab, [TOKENS], (Kind::Int64, Device::Cpu))?;
        let one = || {
            let found = token_logprobs(&hidden, &head, &targets, 1.0, Beside::Entropies, Logits::Narrow)?;
            found.logprobs.f_sub(&found.beside)
        };
        let many = || {
            let logits = hidden.f_linear(&head, None::<&Tensor>)?;
            let normaliser = logits.f_logsumexp([-1], false)?;
            let own = logits.f_gather(-1, &targets.f_unsqueeze(-1)?, false)?.f_squeeze_dim(-1)?;
            let probabilities = logits.f_sub(&normaliser.f_unsqueeze(-1)?)?.f_exp()?;
            let mean = probabilities.f_mul(&logits)?.f_sum_dim_intlist([-1i64].as_slice(), false, None)?;
            own.f_sub(&normaliser)?.f_sub(&normaliser.f_sub(&mean)?)
        };
        let mut times = [Vec::new(), Vec::new()];
        for _ in 0..ROUNDS {
            times[0].push(milliseconds(&head, one)?);
            times[1].push(milliseconds(&head, many)?);
        }
        let [one, many] = times.map(median);
        let ratio = one / many;
        println!(r#"{{"vocab": {vocab}, "one_ms": {one:.1}, "libtorch_ms": {many:.1}, "ratio": {ratio:.2}}}"#);
    }
    Ok(())
}

/// The time of a forward and a backward pass that adds to the gradient of an earlier chunk.
fn milliseconds(head: &Tensor, values: impl Fn() -> Result<Tensor, TchError>) -> Result<f64, TchError> {
    // The gradient of the chunk before.
    head.f_sum(Kind::Float)?.f_backward()?;
    let started = Instant::now();
    values()?.f_sum(Kind::Float)?.f_backward()?;
    Ok(started.elapsed().as_secs_f64() * 1e3)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
