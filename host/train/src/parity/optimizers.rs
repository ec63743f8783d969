//! Steps of 8-bit AdamW against torchao's, and of Muon against PyTorch's, on the fixture of
//! `tests/parity/optimizers.py`.

use crate::optimizer::{AdjustLr, MuonConfig, Optimizer, OptimizerConfig, OptimizerKind};
use safetensors::SafeTensors;
use std::path::Path;
use tch::{Kind, Tensor};

const STEPS: i64 = 4;
const LR: f64 = 1e-2;

/// How far a weight may be from PyTorch's with Muon, which rounds each product of matrices to 16 bits. Products that are
/// rounded once, in whatever order their terms are added, agree to 2e-7; other roundings differ by 2e-4 and more.
const ROUNDING_OF_16_BITS: f64 = 1e-4;

/// The same numbers as in the script.
fn numbers(size: [i64; 2], seed: i64) -> Tensor {
    let number = |at: i64| {
        let hash = (at + seed * 7919) as u32;
        let odd = i64::from(hash.wrapping_mul(2_654_435_761) >> 24) * 2 - 255;
        (odd.pow(3) as f64 / f64::from(1 << 24)) as f32
    };
    let all: Vec<f32> = (0..size[0] * size[1]).map(number).collect();
    Tensor::from_slice(&all).view(size)
}

/// The parameters after the steps, and their optimiser.
fn steps(sizes: &[[i64; 2]], config: OptimizerConfig) -> (Vec<Tensor>, Optimizer) {
    let config =
        OptimizerConfig { betas: [0.9, 0.99], eps: 1e-8, weight_decay: 0.1, max_grad_norm: f64::INFINITY, ..config };
    let parameter = |(at, &size): (usize, &[i64; 2])| numbers(size, 100 * at as i64).set_requires_grad(true);
    let parameters: Vec<Tensor> = sizes.iter().enumerate().map(parameter).collect();
    let named = parameters.iter().enumerate().map(|(at, x)| (format!("model.layers.{at}.weight"), x.shallow_clone()));
    let mut optimizer = Optimizer::new(named.collect(), config).unwrap();
    for step in 0..STEPS {
        for (at, parameter) in parameters.iter().enumerate() {
            let size = parameter.size2().unwrap();
            let gradient = numbers([size.0, size.1], 100 * at as i64 + step + 1);
            (parameter * gradient).sum(Kind::Float).backward();
        }
        optimizer.step(LR).unwrap();
        optimizer.zero_grad().unwrap();
    }
    (parameters, optimizer)
}

fn fixture() -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/optimizers.safetensors");
    std::fs::read(path).unwrap()
}

fn floats(file: &SafeTensors<'_>, name: &str) -> Vec<f64> {
    let data = file.tensor(name).unwrap().data().to_vec();
    data.chunks(4).map(|word| f64::from(f32::from_le_bytes(word.try_into().unwrap()))).collect()
}

fn assert_close(what: &str, found: &Tensor, expected: &[f64], rounding: f64) {
    let found: Vec<f64> = Vec::try_from(found.detach().to_kind(Kind::Double).flatten(0, -1)).unwrap();
    assert_eq!(found.len(), expected.len(), "{what}");
    for (at, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= rounding, "{what}, {at}: {a} is not {b}");
    }
}

#[test]
fn adamw_8bit_is_torchaos() {
    let bytes = fixture();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let config = OptimizerConfig { kind: OptimizerKind::Adamw8Bit, ..OptimizerConfig::default() };
    let (parameters, optimizer) = steps(&[[16, 256], [3, 256]], config);
    for (at, parameter) in parameters.iter().enumerate() {
        let name = format!("adamw_8bit.{at}");
        assert_close(&name, parameter, &floats(&file, &name), 1e-6);
    }
    let [exp_avg, scale, exp_avg_sq, scale_sq] = optimizer.state_of(0) else { panic!("not of 8 bits") };
    for (name, codes, scale) in [("exp_avg", exp_avg, scale), ("exp_avg_sq", exp_avg_sq, scale_sq)] {
        let found: Vec<u8> = Vec::try_from(codes.flatten(0, -1)).unwrap();
        assert!(found == file.tensor(&format!("{name}.codes")).unwrap().data(), "{name} has other codes");
        assert_close(name, scale, &floats(&file, &format!("{name}.scale")), 1e-7);
    }
    assert_eq!(optimizer.state_of(1).len(), 2, "a small parameter has running means of 32 bits");
}

#[test]
fn muon_is_pytorchs() {
    let bytes = fixture();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let original = MuonConfig { momentum: 0.9, nesterov: false, ns_steps: 3, adjust_lr: AdjustLr::Original };
    for (which, muon) in [None, Some(original)].into_iter().enumerate() {
        let config = OptimizerConfig { kind: OptimizerKind::Muon, muon, ..OptimizerConfig::default() };
        let (parameters, _) = steps(&[[6, 10], [8, 8], [12, 5]], config);
        for (at, parameter) in parameters.iter().enumerate() {
            let name = format!("muon.{which}.{at}");
            assert_close(&name, parameter, &floats(&file, &name), ROUNDING_OF_16_BITS);
        }
    }
}
