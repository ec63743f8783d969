//! Operations that are faster on a GPU than the plain ones. Each is used only after a check: at its first use on a
//! device it is compared with the plain operation on random tensors of the model's own shapes. Where they differ by
//! more than rounding, or it fails, the plain one is used, and the log says so.

use crate::error::{PolicyError, Result};
use gavel_torch::scalar::{ScalarOperations, arange};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use tch::{Device, Kind, Tensor};

/// How many units in the last place two results may differ by, relative to the largest number: the order of additions
/// differs.
const UNITS: f64 = 4.0;

/// Whether faster operations may be used, as `[resources] cuda_fast_paths` and `--cuda-fast-paths` set it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CudaFastPaths {
    /// Each is used if its check finds no difference.
    #[default]
    Auto,
    /// None is used.
    Off,
}

impl CudaFastPaths {
    /// Sets it for this process; `Auto` if nobody does.
    pub fn apply(self) {
        ALLOWED.store(self == Self::Auto, Ordering::Relaxed);
    }
}

impl FromStr for CudaFastPaths {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        match name {
            "auto" => Ok(Self::Auto),
            "off" => Ok(Self::Off),
            _ => Err("use auto or off".into()),
        }
    }
}

impl fmt::Display for CudaFastPaths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Auto { "auto" } else { "off" })
    }
}

static ALLOWED: AtomicBool = AtomicBool::new(true);

/// The results of the checks so far.
static CHECKED: Mutex<BTreeMap<Key, bool>> = Mutex::new(BTreeMap::new());

/// A path, the device's number, the kind of numbers, and the shapes.
type Key = (FastPath, usize, &'static str, Vec<i64>);

/// A faster operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FastPath {
    /// Attention in decoding that reads each row's own keys and values alone.
    FlashDecoding,
    /// Attention in training over rows of different lengths at once, without padding.
    FlashPacked,
    /// The same where rows follow shared prompts.
    FlashShared,
    /// Attention in which query heads share their keys and values instead of copies.
    SharedKeys,
    /// Logits in 32 bits of weights in 16.
    WideLogits,
    /// The same with log-probabilities and entropies by kernels.
    FusedHead,
    /// The same of logits that were changed, as sampling changes them.
    FusedChangedHead,
    /// The parts of a layer beside its products and attention, as one kernel each.
    FusedLayers,
    /// Tokens and their log-probabilities by two kernels.
    FusedDraws,
}

impl fmt::Display for FastPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::FlashDecoding => "flash attention in decoding",
            Self::FlashPacked => "flash attention of packed rows",
            Self::FlashShared => "flash attention with shared prompts",
            Self::SharedKeys => "attention with shared keys and values",
            Self::WideLogits => "the product of logits in 32 bits",
            Self::FusedHead => "one kernel for log-probabilities",
            Self::FusedChangedHead => "one kernel for log-probabilities of changed logits",
            Self::FusedLayers => "one kernel for each part of a layer",
            Self::FusedDraws => "two kernels that draw tokens",
        })
    }
}

/// Whether flash attention has kernels for heads of `width` numbers of `kind`, which it reads 16 bytes at a time.
pub(crate) fn has_flash_kernels(kind: Kind, width: i64) -> bool {
    matches!(kind, Kind::BFloat16 | Kind::Half) && width % 8 == 0 && width <= 256
}

/// Whether the faster operations are allowed.
pub(crate) fn are_allowed() -> bool {
    ALLOWED.load(Ordering::Relaxed)
}

/// The results of a faster operation and of the plain operation. Rows of different lengths are compared each by itself:
/// the numbers of a long row may be small beside the numbers of a short row.
pub(crate) struct Results {
    pub(crate) fast: Tensor,
    pub(crate) plain: Tensor,
    /// The lengths of the rows in dimension 0.
    pub(crate) rows: Vec<i64>,
}

/// Whether to use `path` for numbers of `kind` on `device`. At the first question for these `shapes`, all that the
/// operation depends on, `compute` gives the results of both operations.
pub(crate) fn is_usable(
    path: FastPath,
    device: Device,
    kind: Kind,
    shapes: &[i64],
    compute: impl FnOnce() -> Result<Vec<Results>>,
) -> bool {
    let Device::Cuda(index) = device else { return false };
    are_allowed() && checked((path, index, name(kind), shapes.to_vec()), kind, compute)
}

fn checked(key: Key, kind: Kind, compute: impl FnOnce() -> Result<Vec<Results>>) -> bool {
    let known = |checked: &BTreeMap<Key, bool>| checked.get(&key).copied();
    if let Some(usable) = known(&CHECKED.lock().unwrap_or_else(PoisonError::into_inner)) {
        return usable;
    }
    let _guard = tch::no_grad_guard();
    let path = key.0;
    let usable = match compute().and_then(|all| differing(&all, kind)) {
        Ok(None) => true,
        Ok(Some(found)) => {
            tracing::warn!(
                "{path} is not used: its result differs from that of the plain operation by {:.1} % of the largest number\nhint: cuda_fast_paths = \"off\" leaves this out",
                100.0 * found
            );
            false
        }
        // Another time there may be room for the check.
        Err(PolicyError::OutOfMemory { .. }) => return false,
        Err(error) => {
            tracing::warn!("{path} is not used: {error}");
            false
        }
    };
    CHECKED.lock().unwrap_or_else(PoisonError::into_inner).insert(key, usable);
    usable
}

/// The first difference that is more than rounding.
pub(crate) fn differing(all: &[Results], kind: Kind) -> Result<Option<f64>> {
    for Results { fast, plain, rows } in all {
        // A row may be 0 but for rounding.
        let least = largest(plain)? / 16.0;
        let pieces = |x: &Tensor| x.f_split_with_sizes(rows, 0);
        for (fast, plain) in pieces(fast)?.iter().zip(pieces(plain)?) {
            if let Some(found) = beyond(fast, &plain, largest(&plain)?.max(least), kind)? {
                return Ok(Some(found));
            }
        }
    }
    Ok(None)
}

/// The largest difference of two tensors, relative to the largest number of `plain`, if it is more than the rounding of
/// `kind` explains; infinite if a number is not finite.
pub(crate) fn beyond_rounding(fast: &Tensor, plain: &Tensor, kind: Kind) -> Result<Option<f64>> {
    beyond(fast, plain, largest(plain)?, kind)
}

fn largest(x: &Tensor) -> Result<f64> {
    Ok(x.f_to_kind(Kind::Double)?.f_abs()?.f_max()?.f_double_value(&[])?)
}

fn beyond(fast: &Tensor, plain: &Tensor, largest: f64, kind: Kind) -> Result<Option<f64>> {
    let [fast, plain] = [fast.f_to_kind(Kind::Double)?, plain.f_to_kind(Kind::Double)?];
    let found = fast.f_sub(&plain)?.f_abs()?.f_max()?.f_double_value(&[])? / largest.max(f64::MIN_POSITIVE);
    let found = if found.is_finite() { found } else { f64::INFINITY };
    Ok((found > UNITS * unit(kind)).then_some(found))
}

/// The distance from 1 to the next number.
fn unit(kind: Kind) -> f64 {
    match kind {
        Kind::BFloat16 => 2f64.powi(-7),
        Kind::Half => 2f64.powi(-10),
        Kind::Double => f64::EPSILON,
        _ => f64::from(f32::EPSILON),
    }
}

/// A kind's name; `Kind` has no order.
fn name(kind: Kind) -> &'static str {
    match kind {
        Kind::BFloat16 => "bfloat16",
        Kind::Half => "float16",
        Kind::Double => "float64",
        _ => "float32",
    }
}

/// Numbers between -1 and 1 that look random; libtorch's own generator is left alone.
pub(crate) fn random_like(shape: &[i64], seed: i64, kind: Kind, device: Device) -> Result<Tensor> {
    let count: i64 = shape.iter().product();
    let places = arange(0, count, 1, device)?.f_to_kind(Kind::Double)?;
    let angles = places.try_mul(12.9898)?.try_add(78.233 * seed as f64)?;
    Ok(angles.f_sin()?.try_mul(43_758.545_3)?.f_frac()?.f_view(shape)?.f_to_kind(kind)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(shape: i64) -> Key {
        (FastPath::FlashDecoding, 0, "bfloat16", vec![shape])
    }

    fn numbers(values: &[f64]) -> Tensor {
        Tensor::from_slice(values)
    }

    fn results(fast: &[f64], plain: &[f64], rows: &[i64]) -> Result<Vec<Results>> {
        Ok(vec![Results { fast: numbers(fast), plain: numbers(plain), rows: rows.to_vec() }])
    }

    #[test]
    fn a_path_is_used_where_it_differs_by_rounding_alone() {
        let plain = [100.0, -1.0];
        let close = || results(&[102.0, -2.0], &plain, &[2]);
        assert!(checked(key(1), Kind::BFloat16, close) && !checked(key(2), Kind::Float, close));
        assert!(!checked(key(3), Kind::BFloat16, || results(&[104.0, -1.0], &plain, &[2])));
        assert!(!checked(key(4), Kind::BFloat16, || results(&[f64::NAN, -1.0], &plain, &[2])));
        assert!(!checked(key(5), Kind::BFloat16, || Err(PolicyError::Input("no such operation".into()))));
    }

    #[test]
    fn a_row_is_compared_by_itself() {
        let plain = [10.0, 1.0, 0.0];
        let differing = |fast: &[f64], rows| differing(&results(fast, &plain, rows).unwrap(), Kind::BFloat16).unwrap();
        assert!(differing(&[10.0, 1.1, 0.0], &[3]).is_none());
        assert!(differing(&[10.0, 1.1, 0.0], &[1, 2]).is_some());
        // What should be 0 may be rounding.
        assert!(differing(&[10.0, 1.0, 0.01], &[1, 1, 1]).is_none());
        assert!(differing(&[10.0, 1.0, 0.1], &[1, 1, 1]).is_some());
    }

    #[test]
    fn a_check_is_made_once_for_the_same_shapes() {
        let memory = || Err(PolicyError::OutOfMemory { phase: None, what: "full".into() });
        assert!(!checked(key(6), Kind::BFloat16, memory));
        assert!(checked(key(6), Kind::BFloat16, || results(&[1.0], &[1.0], &[1])));
        assert!(checked(key(6), Kind::BFloat16, || Err(PolicyError::Input("asked again".into()))));
        assert!(!checked(key(7), Kind::BFloat16, || results(&[2.0], &[1.0], &[1])));
    }

    #[test]
    fn the_setting_has_the_same_names_everywhere() {
        for setting in [CudaFastPaths::Auto, CudaFastPaths::Off] {
            assert_eq!(setting.to_string().parse(), Ok(setting));
            assert_eq!(serde_json::to_string(&setting).unwrap(), format!("\"{setting}\""));
        }
        assert_eq!("on".parse::<CudaFastPaths>(), Err("use auto or off".into()));
    }

    #[test]
    fn flash_attention_has_kernels_for_some_heads() {
        let has = |kind| [6, 8, 64, 100, 256, 264].map(|width| has_flash_kernels(kind, width));
        assert_eq!(has(Kind::BFloat16), [false, true, true, false, true, false]);
        assert_eq!(has(Kind::Float), [false; 6]);
    }

    #[test]
    fn the_cpu_has_no_faster_paths() {
        let compute = || results(&[1.0], &[1.0], &[1]);
        assert!(!is_usable(FastPath::FlashDecoding, Device::Cpu, Kind::Float, &[8], compute));
    }

    #[test]
    fn numbers_look_random() {
        let found = random_like(&[100, 10], 3, Kind::Float, Device::Cpu).unwrap();
        assert_eq!((found.size(), found.kind()), (vec![100, 10], Kind::Float));
        assert!(found.abs().max().double_value(&[]) <= 1.0);
        assert!(found.mean(Kind::Double).double_value(&[]).abs() < 0.1);
        assert!((found.std(true).double_value(&[]) - 0.577).abs() < 0.05);
    }
}
