//! What the updates of `gavel bench train` cost each of several ranks.

use super::measure::median;
use super::step_time::{PIECE, update_bytes, update_seconds};
use anyhow::{Context, Result};
use gavel::table;
use gavel_policy::{Device, Kind, Tensor};
use gavel_torch::peers::{Cost, Peers};
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// Updates of several ranks, beside what is predicted from their parts.
#[derive(Serialize)]
pub struct OfRanks {
    ranks: usize,
    /// From the three parts below.
    predicted_seconds: f64,
    /// A rank's passes and its step, of the slowest rank, while the others do theirs.
    passes_seconds: f64,
    /// The sums of all gradients, with nothing beside them.
    sums_seconds: f64,
    /// The sending of all weights.
    weights_seconds: f64,
    /// How long a rank waited for others in an update, in the mean.
    waited_seconds: f64,
    /// How long sums ran beside the backward pass, in the mean.
    overlapped_seconds: f64,
    /// What all ranks sent in an update.
    bytes_sent: u64,
    predicted_bytes: u64,
}

/// What a rank tells the others of its updates.
#[derive(Serialize, Deserialize)]
struct Own {
    passes: f64,
    waited: f64,
    overlapped: f64,
    bytes: u64,
}

/// A rank's measurements: the seconds of its passes by themselves, and the costs of its updates with the others.
pub struct Measured<'a> {
    pub passes: f64,
    pub costs: &'a [Cost],
    /// Trained parameters, and their device and kind.
    pub parameters: u64,
    pub device: Device,
    pub kind: Kind,
    /// The share of the passes in which sums can run.
    pub beside: f64,
}

/// The updates of all ranks, which all call this.
pub fn of_ranks(peers: &Peers, measured: &Measured) -> Result<OfRanks> {
    let mean = |seconds: fn(&Cost) -> f64| {
        measured.costs.iter().map(seconds).sum::<f64>() / measured.costs.len().max(1) as f64
    };
    let sent = |cost: &Cost| (cost.sum_bytes + cost.reduce_bytes + cost.broadcast_bytes) as f64;
    let own = Own {
        passes: measured.passes,
        waited: mean(|cost| cost.waited.as_secs_f64()),
        overlapped: mean(|cost| cost.overlapped.as_secs_f64()),
        bytes: mean(sent) as u64,
    };
    let all = peers.gather(&serde_json::to_vec(&own)?)?;
    let all = all.iter().map(|bytes| serde_json::from_slice(bytes));
    let all: Vec<Own> = all.collect::<std::result::Result<_, _>>().context("a rank sent no measurements")?;
    let [sums, weights] = exchange_seconds(peers, measured)?;
    let passes = all.iter().map(|own| own.passes).fold(0.0, f64::max);
    let pieces = 4.0 * measured.parameters as f64 / PIECE;
    let of_ranks = |value: fn(&Own) -> f64| all.iter().map(value).sum::<f64>() / all.len() as f64;
    Ok(OfRanks {
        ranks: peers.size(),
        predicted_seconds: update_seconds(passes, passes * measured.beside, sums, weights, pieces).iter().sum(),
        passes_seconds: passes,
        sums_seconds: sums,
        weights_seconds: weights,
        waited_seconds: of_ranks(|own| own.waited),
        overlapped_seconds: of_ranks(|own| own.overlapped),
        bytes_sent: all.iter().map(|own| own.bytes).sum(),
        predicted_bytes: update_bytes(measured.parameters, measured.kind, peers.size() as u64) as u64,
    })
}

/// Seconds of the sums and of the broadcasts of an update, piece by piece, each for or from the next rank.
fn exchange_seconds(peers: &Peers, measured: &Measured) -> Result<[f64; 2]> {
    let (parameters, device) = (measured.parameters, measured.device);
    let mut lengths = vec![PIECE as i64 / 4; (4 * parameters / PIECE as u64) as usize];
    lengths.push((parameters - lengths.iter().sum::<i64>() as u64) as i64);
    let pieces = lengths.iter().map(|length| Tensor::f_zeros([*length], (Kind::Float, device)));
    let pieces: Vec<Tensor> = pieces.collect::<std::result::Result<_, _>>()?;
    // Weights have the kind of the model.
    let weights = pieces.iter().map(|piece| piece.f_to_kind(measured.kind));
    let weights: Vec<Tensor> = weights.collect::<std::result::Result<_, _>>()?;
    let owned = || pieces.iter().enumerate().map(|(at, piece)| (piece, at % peers.size()));
    let mut rounds = [Vec::new(), Vec::new()];
    for _ in 0..3 {
        peers.gather(&[])?;
        let started = Instant::now();
        let sums: Vec<_> =
            owned().map(|(piece, to)| peers.begin_reduce(piece, to)).collect::<std::result::Result<_, _>>()?;
        sums.into_iter().try_for_each(|sum| sum.wait())?;
        rounds[0].push(started.elapsed().as_secs_f64());
        peers.gather(&[])?;
        let started = Instant::now();
        let owned = weights.iter().enumerate();
        owned
            .map(|(at, piece)| (piece, at % peers.size()))
            .try_for_each(|(piece, from)| peers.broadcast(piece, from))?;
        rounds[1].push(started.elapsed().as_secs_f64());
    }
    Ok(rounds.map(median))
}

impl OfRanks {
    /// Prints a table of updates of `seconds`.
    pub fn print(&self, seconds: f64) {
        let shown = |seconds: f64| format!("{seconds:.3} s");
        let row = [
            self.ranks.to_string(),
            shown(seconds),
            shown(self.predicted_seconds),
            shown(self.passes_seconds),
            shown(self.sums_seconds),
            shown(self.weights_seconds),
            shown(self.waited_seconds),
            shown(self.overlapped_seconds),
            format!("{:.1} MB ({:.1})", self.bytes_sent as f64 / 1e6, self.predicted_bytes as f64 / 1e6),
        ];
        let header =
            ["ranks", "update", "predicted", "passes", "sums", "weights", "waited", "overlapped", "sent (predicted)"];
        table::print(header, std::iter::once(row));
    }
}
