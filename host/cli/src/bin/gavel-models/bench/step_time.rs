//! How long a step takes on many devices, predicted from stated speeds.

use super::cost::update_flops;
use gavel_policy::ModelConfig;
use gavel_policy::memory::{Footprint, kv_bytes_per_layer};
use gavel_policy::{Device, Kind};
use serde::Serialize;

/// Bytes of a number of a gradient, which is summed in 32 bits.
const FLOAT: f64 = 4.0;

/// Gradients are summed, and weights sent, in pieces of this many bytes.
pub const PIECE: f64 = (25 << 20) as f64;

/// Bytes of a response's token, and of a prompt's, in a group that ranks exchange: ids and log-probabilities in base64,
/// and the text.
const EXCHANGED: [f64; 2] = [14.6, 5.4];

/// The speeds of a cluster's devices and networks, in operations, bytes and seconds.
#[derive(Debug, Clone, Copy)]
pub struct Cluster {
    /// Devices of a machine, which have a network of their own.
    pub machine: u64,
    /// Operations of a device a second in training passes, as `gavel bench train` measures them.
    pub flops: f64,
    /// What a device reads from its memory.
    pub memory: f64,
    /// What a device sends to another of its machine.
    pub inside: f64,
    /// What a device sends to another machine.
    pub between: f64,
    /// Until a message arrives at another machine.
    pub latency: f64,
    /// Bytes of exchanged samples that a rank reads a second.
    pub reading: f64,
}

/// What each device does in a step.
#[derive(Debug, Clone, Copy)]
pub struct Work {
    /// Responses of each device.
    pub responses: u32,
    /// Responses to a prompt.
    pub group: u32,
    /// Tokens of a prompt.
    pub prompt: u32,
    /// Tokens of the mean response.
    pub response: u32,
    /// Tokens of the longest response.
    pub longest: u32,
    /// Optimiser steps.
    pub updates: u32,
    /// Tokens of a micro-batch.
    pub micro_batch: u32,
    /// Whether the backward pass computes each layer again.
    pub again: bool,
    /// Whether ranks have layers in parts: then it does.
    pub by_layer: bool,
}

/// Seconds of a step, part by part.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StepTime {
    /// How many devices.
    pub devices: u64,
    /// Until the last response is drawn.
    pub rollout: f64,
    /// All ranks read the samples of all.
    pub exchange: f64,
    /// Forward and backward passes of the device with the most tokens.
    pub passes: f64,
    /// Sums of gradients that do not run beside a backward pass.
    pub sums: f64,
    /// New weights are sent to all, and by layer those that a rank has not.
    pub weights: f64,
}

impl StepTime {
    /// All of them.
    pub fn total(&self) -> f64 {
        self.rollout + self.exchange + self.passes + self.sums + self.weights
    }
}

/// The time of an update whose passes take `passes` seconds, and in whose last backward pass `beside` seconds are left
/// for sums: the passes, the sums that are left then, at the least the last of `pieces`, and the sending of weights.
pub fn update_seconds(passes: f64, beside: f64, sums: f64, weights: f64, pieces: f64) -> [f64; 3] {
    [passes, (sums - beside).max(sums / pieces.max(1.0)), weights]
}

/// The bytes that all ranks together send in an update with this many trained parameters of `kind`: each sum goes to one
/// rank, which also sends its part of it, and each new weight from one rank to all.
pub fn update_bytes(parameters: u64, kind: Kind, ranks: u64) -> f64 {
    let (parameters, ranks) = (parameters as f64, ranks as f64);
    let sums = FLOAT * parameters * (ranks - 1.0) * (1.0 + 1.0 / ranks);
    sums + kind.elt_size_in_bytes() as f64 * parameters * (ranks - 1.0)
}

/// The time of a step on `devices` devices.
///
/// Each phase takes the larger of what its arithmetic and its memory or network need. A sum of gradients goes once
/// around a ring of all devices, and so does a new weight (NCCL's `reduce` and `broadcast`): a piece takes its bytes
/// over the speed, and a message to each machine in turn.
pub fn predict(config: &ModelConfig, kind: Kind, work: &Work, cluster: &Cluster, devices: u64) -> StepTime {
    let footprint = Footprint::new(config, kind, Device::Cuda(0));
    let parameters = footprint.parameters() as f64;
    let embedding = (config.vocab_size * config.hidden_size) as f64;
    let read = if config.tie_word_embeddings { parameters } else { parameters - embedding };
    let [responses, group, prompt, response, longest] =
        [work.responses, work.group, work.prompt, work.response, work.longest].map(f64::from);
    let n = devices as f64;

    // A token reads all weights, and the keys and values of all rows of its device.
    let per_token = (config.num_hidden_layers as u64 * kv_bytes_per_layer(config, kind)) as f64;
    let cached = responses * (prompt + response / 2.0) * per_token;
    let weights = read * kind.elt_size_in_bytes() as f64;
    let token = ((weights + cached) / cluster.memory).max(2.0 * read * responses / cluster.flops);
    let prefill = 2.0 * read * (responses / group).ceil() * prompt / cluster.flops;
    let rollout = prefill + longest * token;

    let exchanged = n * responses * (EXCHANGED[0] * response + EXCHANGED[1] * prompt);
    let exchange = if devices > 1 { exchanged / cluster.between.min(cluster.reading) } else { 0.0 };

    // Shares are by tokens, and end with a whole row: half a longest row more than the mean.
    let of_group = vec![u64::from(work.response); work.group as usize];
    let again = work.again || work.by_layer;
    let flops = update_flops(config, u64::from(work.prompt), &of_group, again);
    let tokens = responses * (response + prompt / group);
    let excess = if devices > 1 { 1.0 + f64::from(work.updates) * longest / 2.0 / tokens } else { 1.0 };
    let passes = responses / group * flops / cluster.flops * excess;

    let updates = f64::from(work.updates);
    let micro_batches = (tokens / updates / f64::from(work.micro_batch)).ceil();
    let backward = if again { 0.75 } else { 2.0 / 3.0 };
    let beside = passes / updates / micro_batches * backward;
    let bytes = FLOAT * parameters;
    let around = cluster.around(bytes, devices);
    let weights = cluster.around(kind.elt_size_in_bytes() as f64 * parameters, devices);
    let [sums, weights] = match work.by_layer {
        // Each micro-batch gathers every layer twice, and waits for its sums.
        true => [micro_batches * around, (2.0 * micro_batches + 1.0) * weights],
        false => {
            let [_, sums, weights] = update_seconds(passes / updates, beside, around, weights, bytes / PIECE);
            [sums, weights]
        }
    };
    StepTime { devices, rollout, exchange, passes, sums: updates * sums, weights: updates * weights }
}

impl Cluster {
    /// Seconds until `bytes` have gone once around a ring of all devices, piece by piece. Rings that leave a machine
    /// share its connections, one of each device.
    fn around(&self, bytes: f64, devices: u64) -> f64 {
        let machines = devices.div_ceil(self.machine);
        let speed = if machines > 1 { self.inside.min(self.machine as f64 * self.between) } else { self.inside };
        match devices {
            1 => 0.0,
            _ => bytes / speed + (bytes / PIECE).ceil() * (machines - 1) as f64 * self.latency,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> ModelConfig {
        serde_json::from_value(serde_json::json!({
            "model_type": "qwen2", "vocab_size": 152_064, "hidden_size": 3584, "intermediate_size": 18_944,
            "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
            "tie_word_embeddings": false,
        }))
        .unwrap()
    }

    const WORK: Work = Work {
        responses: 64,
        group: 16,
        prompt: 512,
        response: 2048,
        longest: 8192,
        updates: 2,
        micro_batch: 16_384,
        again: true,
        by_layer: false,
    };

    const CLUSTER: Cluster = Cluster {
        machine: 8,
        flops: 4e14,
        memory: 3.35e12,
        inside: 4.5e11,
        between: 5e10,
        latency: 1e-5,
        reading: 1e9,
    };

    #[test]
    fn more_devices_with_as_much_work_each_take_longer_by_what_they_exchange_alone() {
        let time = |devices| predict(&config(), Kind::BFloat16, &WORK, &CLUSTER, devices);
        for (few, many) in [(8, 16), (16, 64), (64, 1024)] {
            let (few, many) = (time(few), time(many));
            assert!(few.rollout == many.rollout && few.passes == many.passes, "{few:?}, {many:?}");
            assert!(few.exchange < many.exchange && few.weights < many.weights, "{few:?}, {many:?}");
        }
        let alone = time(1);
        assert_eq!([alone.exchange, alone.sums, alone.weights], [0.0; 3]);
        assert!(alone.passes < time(8).passes, "a share ends with a whole row");
        // Decoding reads 14.1 GB of weights and some 5.5 GB of keys and values for each token.
        assert!((alone.rollout - 8192.0 * 19.7e9 / 3.35e12).abs() < 2.0, "{alone:?}");
    }

    #[test]
    fn sums_hide_behind_a_long_backward_pass_but_for_the_last() {
        assert_eq!(update_seconds(9.0, 6.0, 4.0, 1.0, 40.0), [9.0, 0.1, 1.0]);
        assert_eq!(update_seconds(9.0, 6.0, 10.0, 1.0, 40.0), [9.0, 4.0, 1.0]);
        let slow = Cluster { between: 1e9, ..CLUSTER };
        let time = |cluster: &Cluster| predict(&config(), Kind::BFloat16, &WORK, cluster, 16);
        assert!(time(&slow).sums > 5.0 * time(&CLUSTER).sums);
        let parts = Work { by_layer: true, ..WORK };
        let parts = predict(&config(), Kind::BFloat16, &parts, &CLUSTER, 16);
        // 5 micro-batches an update.
        assert!((parts.weights / time(&CLUSTER).weights - 11.0).abs() < 1e-9 && parts.sums > 5.0 * time(&CLUSTER).sums);
    }

    #[test]
    fn bytes_are_those_of_all_ranks() {
        assert_eq!(update_bytes(100, Kind::Float, 1), 0.0);
        // Of two ranks, the one sends the other's half of the gradients and half of its own sums, and half of the weights.
        assert_eq!(update_bytes(100, Kind::Float, 2), 2.0 * (200.0 + 100.0 + 200.0));
        assert_eq!(update_bytes(100, Kind::BFloat16, 2), 2.0 * (200.0 + 100.0 + 100.0));
    }
}
