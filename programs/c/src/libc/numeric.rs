//! `math.h`, and the numbers of `stdlib.h`.

use super::functions;
use super::memory::{Guest, State};
use super::number::{double, integer};
use wasmi::{Error, Linker};

const ERANGE: i32 = 34;

type OfOne = fn(f64) -> f64;
type OfTwo = fn(f64, f64) -> f64;

/// Rounds to the nearest whole number, and to the even one of two.
fn even(x: f64) -> f64 {
    x.round_ties_even()
}

pub fn link(linker: &mut Linker<State>) -> Result<(), Error> {
    let of_one: [(&str, OfOne); 32] = [
        ("sin", libm::sin),
        ("cos", libm::cos),
        ("tan", libm::tan),
        ("asin", libm::asin),
        ("acos", libm::acos),
        ("atan", libm::atan),
        ("sinh", libm::sinh),
        ("cosh", libm::cosh),
        ("tanh", libm::tanh),
        ("asinh", libm::asinh),
        ("acosh", libm::acosh),
        ("atanh", libm::atanh),
        ("exp", libm::exp),
        ("exp2", libm::exp2),
        ("expm1", libm::expm1),
        ("log", libm::log),
        ("log2", libm::log2),
        ("log10", libm::log10),
        ("log1p", libm::log1p),
        ("sqrt", f64::sqrt),
        ("cbrt", libm::cbrt),
        ("fabs", f64::abs),
        ("floor", f64::floor),
        ("ceil", f64::ceil),
        ("round", f64::round),
        ("trunc", f64::trunc),
        ("rint", even),
        ("nearbyint", even),
        ("tgamma", libm::tgamma),
        ("lgamma", libm::lgamma),
        ("erf", libm::erf),
        ("erfc", libm::erfc),
    ];
    for (name, function) in of_one {
        linker.func_wrap("env", name, move |x: f64| function(x))?;
    }
    let of_two: [(&str, OfTwo); 10] = [
        ("pow", libm::pow),
        ("atan2", libm::atan2),
        ("fmod", libm::fmod),
        ("remainder", libm::remainder),
        ("hypot", libm::hypot),
        ("fmax", f64::max),
        ("fmin", f64::min),
        ("fdim", libm::fdim),
        ("copysign", f64::copysign),
        ("nextafter", libm::nextafter),
    ];
    for (name, function) in of_two {
        linker.func_wrap("env", name, move |x: f64, y: f64| function(x, y))?;
    }
    linker.func_wrap("env", "fma", |x: f64, y: f64, z: f64| libm::fma(x, y, z))?;
    linker.func_wrap("env", "lround", |x: f64| x.round() as i64)?;
    linker.func_wrap("env", "lrint", |x: f64| even(x) as i64)?;
    linker.func_wrap("env", "ldexp", |x: f64, exponent: i32| libm::ldexp(x, exponent))?;
    linker.func_wrap("env", "__isnan", |x: f64| i32::from(x.is_nan()))?;
    linker.func_wrap("env", "__isinf", |x: f64| i32::from(x.is_infinite()))?;
    linker.func_wrap("env", "__isfinite", |x: f64| i32::from(x.is_finite()))?;
    linker.func_wrap("env", "__signbit", |x: f64| i32::from(x.is_sign_negative()))?;
    linker.func_wrap("env", "abs", i32::wrapping_abs)?;
    linker.func_wrap("env", "labs", i64::wrapping_abs)?;
    linker.func_wrap("env", "llabs", i64::wrapping_abs)?;
    functions! { linker,
        "frexp" => |guest, x: f64, to: u32| -> f64 {
            let (fraction, exponent) = libm::frexp(x);
            guest.put(to, &exponent.to_le_bytes())?;
            Ok(fraction)
        }
        "modf" => |guest, x: f64, to: u32| -> f64 {
            let (fraction, whole) = libm::modf(x);
            guest.put(to, &whole.to_le_bytes())?;
            Ok(fraction)
        }
        "atoi" => |guest, text: u32| -> i32 { Ok(integer(guest.text(text)?, 10).map_or(0, |n| n.signed().0 as i32)) }
        "atol" => |guest, text: u32| -> i64 { Ok(integer(guest.text(text)?, 10).map_or(0, |n| n.signed().0)) }
        "atoll" => |guest, text: u32| -> i64 { Ok(integer(guest.text(text)?, 10).map_or(0, |n| n.signed().0)) }
        "atof" => |guest, text: u32| -> f64 { Ok(double(guest.text(text)?).map_or(0.0, |(value, _)| value)) }
        "strtod" => |guest, text: u32, end: u32| -> f64 { fraction(&mut guest, text, end) }
        "strtold" => |guest, text: u32, end: u32| -> f64 { fraction(&mut guest, text, end) }
        "strtof" => |guest, text: u32, end: u32| -> f32 { fraction(&mut guest, text, end).map(|value| value as f32) }
        "strtol" => |guest, text: u32, end: u32, base: i32| -> i64 { signed(&mut guest, text, end, base) }
        "strtoll" => |guest, text: u32, end: u32, base: i32| -> i64 { signed(&mut guest, text, end, base) }
        "strtoul" => |guest, text: u32, end: u32, base: i32| -> u64 { unsigned(&mut guest, text, end, base) }
        "strtoull" => |guest, text: u32, end: u32, base: i32| -> u64 { unsigned(&mut guest, text, end, base) }
        "srand" => |guest, seed: u32| -> () { guest.state.random = seed.into(); Ok(()) }
        "srandom" => |guest, seed: u32| -> () { guest.state.random = seed.into(); Ok(()) }
        "rand" => |guest| -> i32 { Ok(random(&mut guest.state.random)) }
        "random" => |guest| -> i64 { Ok(random(&mut guest.state.random).into()) }
        "rand_r" => |guest, seed: u32| -> i32 {
            let mut state = u64::from(guest.word(seed)?);
            let value = random(&mut state);
            guest.put(seed, &(state as u32).to_le_bytes())?;
            Ok(value)
        }
    }
    Ok(())
}

/// The numbers of musl's `rand`: glibc's are other ones.
fn random(state: &mut u64) -> i32 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
    (*state >> 33) as i32
}

fn set_end(guest: &mut Guest, end: u32, at: u32) -> Result<(), Error> {
    if end == 0 {
        return Ok(());
    }
    guest.put(end, &at.to_le_bytes())
}

fn fraction(guest: &mut Guest, text: u32, end: u32) -> Result<f64, Error> {
    let (value, used) = double(guest.text(text)?).unwrap_or((0.0, 0));
    set_end(guest, end, text + used as u32)?;
    Ok(value)
}

fn signed(guest: &mut Guest, text: u32, end: u32, base: i32) -> Result<i64, Error> {
    let found = integer(guest.text(text)?, base.clamp(0, 36) as u32);
    let (value, fits) = found.as_ref().map_or((0, true), |found| found.signed());
    set_end(guest, end, text + found.map_or(0, |found| found.used as u32))?;
    if !fits {
        guest.set_errno(ERANGE);
    }
    Ok(value)
}

fn unsigned(guest: &mut Guest, text: u32, end: u32, base: i32) -> Result<u64, Error> {
    let found = integer(guest.text(text)?, base.clamp(0, 36) as u32);
    let (value, fits) = found.as_ref().map_or((0, true), |found| found.unsigned());
    set_end(guest, end, text + found.map_or(0, |found| found.used as u32))?;
    if !fits {
        guest.set_errno(ERANGE);
    }
    Ok(value)
}
