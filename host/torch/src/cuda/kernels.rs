//! Parts of a transformer layer as kernels of our own (`shim/cuda/kernels.cu`), for numbers of bfloat16 on a GPU. Each is
//! one pass over memory. A caller should first compare them with the operations in [`layer`](crate::layer). And the
//! drawing of tokens, from logits of 32 bits.

use super::{found_once, symbol};
use crate::{Result, TchError, made};
use std::ffi::c_char;
use std::sync::OnceLock;
use tch::{Device, Kind, Tensor};
use torch_sys::C_tensor;

/// Whether kernels read numbers like those of `x`, whose last dimension has pieces of `width`: a thread reads eight
/// numbers at a time.
pub fn fit(x: &Tensor, width: i64) -> bool {
    matches!(x.device(), Device::Cuda(_)) && x.kind() == Kind::BFloat16 && width % 8 == 0
}

/// Where a function of the shim writes the tensors that it makes.
type Out = *mut *mut C_tensor;
type Norm = unsafe extern "C" fn(*const C_tensor, *const C_tensor, f64, Out) -> *mut c_char;
type Product = unsafe extern "C" fn(*const C_tensor, Out) -> *mut c_char;
type Rotate = unsafe extern "C" fn(*const C_tensor, *const C_tensor, *const C_tensor, i64, Out) -> *mut c_char;
type Store = unsafe extern "C" fn(
    *const C_tensor,
    *const C_tensor,
    *const C_tensor,
    *const C_tensor,
    *const C_tensor,
    *const C_tensor,
    *const C_tensor,
    i64,
    Out,
) -> *mut c_char;
type DrawTokens =
    unsafe extern "C" fn(*const C_tensor, *const C_tensor, *const C_tensor, *const C_tensor, Out) -> *mut c_char;

#[derive(Debug, Clone, Copy)]
struct Functions {
    norm: Norm,
    product: Product,
    rotate: Rotate,
    store: Store,
    draw: DrawTokens,
}

fn functions() -> Result<Functions> {
    static FOUND: OnceLock<Functions> = OnceLock::new();
    // SAFETY: these are the signatures in the shim.
    found_once(&FOUND, || unsafe {
        Ok(Functions {
            norm: symbol(c"gavel_cuda_rms_norm")?,
            product: symbol(c"gavel_cuda_silu_product")?,
            rotate: symbol(c"gavel_cuda_rotate")?,
            store: symbol(c"gavel_cuda_rotate_and_store")?,
            draw: symbol(c"gavel_cuda_draw")?,
        })
    })
}

fn ensure(fits: bool, what: &str) -> Result<()> {
    if fits { Ok(()) } else { Err(TchError::Torch(format!("{what}: the tensors do not fit the kernel"))) }
}

/// [`layer::rms_norm`](crate::layer::rms_norm). Where a gradient is needed, it is libtorch's operation.
///
/// # Errors
/// The tensors are not of bfloat16 on a GPU, widths are no multiples of 8, or the GPU has no such kernel.
pub fn rms_norm(x: &Tensor, weight: &Tensor, eps: f64) -> Result<Tensor> {
    let width = x.size().last().copied().unwrap_or_default();
    let fits = fit(x, width) && fit(weight, width) && weight.size() == [width] && weight.device() == x.device();
    ensure(fits && width > 0, "a norm")?;
    let (x, weight, functions) = (x.f_contiguous()?, weight.f_contiguous()?, functions()?);
    // SAFETY: kinds, devices and widths are those that the shim asks for, and there are no gaps; the tensors outlive the
    // call.
    let [out] = made(|out| unsafe { (functions.norm)(x.as_ptr(), weight.as_ptr(), eps, out) })?;
    Ok(out)
}

/// [`layer::silu_product`](crate::layer::silu_product).
///
/// # Errors
/// As [`rms_norm`].
pub fn silu_product(gate_up: &Tensor) -> Result<Tensor> {
    let (_, columns) = gate_up.size2()?;
    ensure(fit(gate_up, columns / 2) && columns % 2 == 0, "a gated product")?;
    let (gate_up, functions) = (gate_up.f_contiguous()?, functions()?);
    // SAFETY: as above.
    let [out] = made(|out| unsafe { (functions.product)(gate_up.as_ptr(), out) })?;
    Ok(out)
}

/// [`layer::rotate`](crate::layer::rotate).
///
/// # Errors
/// As [`rms_norm`], with the half of a head as the width.
pub fn rotate(x: &Tensor, queries: i64, cos: &Tensor, sin: &Tensor) -> Result<[Tensor; 2]> {
    ensure_rotation(x, queries, cos, sin)?;
    let (x, cos, sin, functions) = (neighbours(x)?, cos.f_contiguous()?, sin.f_contiguous()?, functions()?);
    // SAFETY: as above; the angles have no gaps, one for each token and pair.
    made(|out| unsafe { (functions.rotate)(x.as_ptr(), cos.as_ptr(), sin.as_ptr(), queries, out) })
}

/// [`rotate`] without a gradient, whose keys are written to `keys` and `value` to `values`: `[places, heads, width]`
/// without gaps, at `places`, `[tokens]`. Gives the queries.
///
/// # Errors
/// As [`rotate`].
pub fn rotate_and_store(
    [x, value]: [&Tensor; 2],
    queries: i64,
    [cos, sin]: [&Tensor; 2],
    places: &Tensor,
    [keys, values]: [&Tensor; 2],
) -> Result<Tensor> {
    ensure_rotation(x, queries, cos, sin)?;
    let (tokens, heads, width) = x.size3()?;
    let stored =
        |x: &Tensor| fit(x, width) && x.dim() == 3 && x.size()[1..] == [heads - queries, width] && x.is_contiguous();
    let fits = fit(value, width)
        && value.device() == x.device()
        && value.size() == [tokens, heads - queries, width]
        && stored(keys)
        && stored(values)
        && (places.size(), places.kind(), places.device()) == (vec![tokens], Kind::Int64, x.device());
    ensure(fits, "a rotation into a cache")?;
    let (x, value, places) = (neighbours(x)?, neighbours(value)?, places.f_contiguous()?);
    let (cos, sin, functions) = (cos.f_contiguous()?, sin.f_contiguous()?, functions()?);
    // SAFETY: as above; the caller answers for the places, as with any cache.
    let [query] = made(|out| unsafe {
        (functions.store)(
            x.as_ptr(),
            value.as_ptr(),
            cos.as_ptr(),
            sin.as_ptr(),
            places.as_ptr(),
            keys.as_ptr(),
            values.as_ptr(),
            queries,
            out,
        )
    })?;
    Ok(query)
}

/// How tokens are drawn from logits: of each row, `[rows]` without gaps.
#[derive(Debug, Clone, Copy)]
pub struct Draws<'a> {
    /// What logits are divided by, in 64 bits.
    pub temperatures: &'a Tensor,
    /// The share of the probabilities that are before the token, in 64 bits: at least 0 and below 1.
    pub uniforms: &'a Tensor,
    /// Whether the token is the most probable one instead, of several the first: a whole number that is not 0.
    pub greedy: &'a Tensor,
}

/// Whether [`draw`] has kernels for such logits, `[rows, vocab]`.
pub fn can_draw(device: Device, vocab: i64) -> bool {
    matches!(device, Device::Cuda(_)) && vocab % 4 == 0 && (1..=MOST_DRAWN).contains(&vocab)
}

/// The largest vocabulary that [`draw`] draws from.
const MOST_DRAWN: i64 = 256 * 4096;

/// Draws a token for each row of `logits`, `[rows, vocab]` of 32 bits, by the inverse of the cumulative distribution.
/// Gives the tokens, `[rows, 1]`, and pairs of a token and its log-probability in 64 bits, `[rows, 1, 2]`. The
/// log-probability is not finite where a logit is NaN or positively infinite, or where all are negatively infinite.
///
/// # Errors
/// The tensors do not fit each other, [`can_draw`] is false, or the GPU has no such kernel.
pub fn draw(logits: &Tensor, draws: Draws) -> Result<[Tensor; 2]> {
    let ((rows, vocab), device) = (logits.size2()?, logits.device());
    let is_line =
        |x: &Tensor, kind| x.size() == [rows] && x.kind() == kind && x.device() == device && x.is_contiguous();
    let fits = can_draw(device, vocab)
        && logits.kind() == Kind::Float
        && is_line(draws.temperatures, Kind::Double)
        && is_line(draws.uniforms, Kind::Double)
        && is_line(draws.greedy, Kind::Int64);
    ensure(fits, "drawing tokens")?;
    let (logits, functions) = (logits.f_contiguous()?, functions()?);
    let (temperatures, uniforms, greedy) =
        (draws.temperatures.as_ptr(), draws.uniforms.as_ptr(), draws.greedy.as_ptr());
    // SAFETY: shapes, kinds and devices are those that the shim asks for, without gaps; the tensors outlive the call.
    made(|out| unsafe { (functions.draw)(logits.as_ptr(), temperatures, uniforms, greedy, out) })
}

fn ensure_rotation(x: &Tensor, queries: i64, cos: &Tensor, sin: &Tensor) -> Result<()> {
    let (tokens, heads, width) = x.size3()?;
    let half = width / 2;
    let angles = [(cos, [tokens, 1, 1, half]), (sin, [tokens, 1, 2, half])];
    let angles =
        angles.iter().all(|(of, size)| of.size() == size && of.kind() == Kind::Float && of.device() == x.device());
    let fits = fit(x, half) && width % 2 == 0 && (0..=heads).contains(&queries) && angles;
    ensure(fits, "a rotation")
}

/// `x`, `[tokens, heads, width]`, with the heads of a token beside each other.
fn neighbours(x: &Tensor) -> Result<Tensor> {
    let [token, head, one] = <[i64; 3]>::try_from(x.stride()).unwrap_or_default();
    let fit = one == 1 && head == x.size()[2] && token % 8 == 0;
    Ok(if fit { x.shallow_clone() } else { x.f_contiguous()? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tensors_that_do_not_fit_are_refused() {
        let zeros = |shape: &[i64]| Tensor::zeros(shape, (Kind::BFloat16, Device::Cpu));
        let x = zeros(&[2, 16]);
        let errors = [
            rms_norm(&x, &zeros(&[16]), 1e-6).unwrap_err(),
            silu_product(&x).unwrap_err(),
            rotate(&zeros(&[2, 3, 16]), 2, &zeros(&[2, 1, 1, 8]), &zeros(&[2, 1, 2, 8])).unwrap_err(),
            draw(&x, Draws { temperatures: &x, uniforms: &x, greedy: &x }).unwrap_err(),
        ];
        for error in errors {
            assert!(error.to_string().contains("do not fit"), "{error}");
        }
        assert!(!fit(&x, 16));
    }
}
