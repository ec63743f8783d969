//! `math.h`, and the numbers of `stdlib.h`.

use super::functions;
use super::memory::{Guest, State};
use super::number::{double, integer};
use std::num::FpCategory;
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
        linker.func_wrap("env", &format!("{name}l"), move |x: f64| function(x))?;
        linker.func_wrap("env", &format!("{name}f"), move |x: f32| function(x.into()) as f32)?;
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
        linker.func_wrap("env", &format!("{name}l"), move |x: f64, y: f64| function(x, y))?;
        if name != "nextafter" {
            let of_floats = move |x: f32, y: f32| function(x.into(), y.into()) as f32;
            linker.func_wrap("env", &format!("{name}f"), of_floats)?;
        }
    }
    linker.func_wrap("env", "nextafterf", libm::nextafterf)?;
    linker.func_wrap("env", "fma", libm::fma)?;
    linker.func_wrap("env", "fmal", libm::fma)?;
    linker.func_wrap("env", "fmaf", libm::fmaf)?;
    for name in ["lround", "llround"] {
        linker.func_wrap("env", name, |x: f64| whole(x.round()))?;
        linker.func_wrap("env", &format!("{name}l"), |x: f64| whole(x.round()))?;
        linker.func_wrap("env", &format!("{name}f"), |x: f32| whole(x.round().into()))?;
    }
    for name in ["lrint", "llrint"] {
        linker.func_wrap("env", name, |x: f64| whole(even(x)))?;
        linker.func_wrap("env", &format!("{name}l"), |x: f64| whole(even(x)))?;
        linker.func_wrap("env", &format!("{name}f"), |x: f32| whole(even(x.into())))?;
    }
    for name in ["ldexp", "ldexpl", "scalbn"] {
        linker.func_wrap("env", name, libm::ldexp)?;
    }
    linker.func_wrap("env", "ldexpf", libm::ldexpf)?;
    linker.func_wrap("env", "ilogb", libm::ilogb)?;
    linker.func_wrap("env", "logb", |x: f64| match x {
        0.0 => f64::NEG_INFINITY,
        x if x.is_infinite() => f64::INFINITY,
        x if x.is_nan() => x,
        x => libm::ilogb(x).into(),
    })?;
    linker.func_wrap("env", "__fpclassify", |x: f64| match x.classify() {
        FpCategory::Nan => 0,
        FpCategory::Infinite => 1,
        FpCategory::Zero => 2,
        FpCategory::Subnormal => 3,
        FpCategory::Normal => 4,
    })?;
    linker.func_wrap("env", "nan", |_tag: u32| f64::NAN)?;
    linker.func_wrap("env", "__isnan", |x: f64| i32::from(x.is_nan()))?;
    linker.func_wrap("env", "__isinf", |x: f64| i32::from(x.is_infinite()))?;
    linker.func_wrap("env", "__isfinite", |x: f64| i32::from(x.is_finite()))?;
    linker.func_wrap("env", "__signbit", |x: f64| i32::from(x.is_sign_negative()))?;
    linker.func_wrap("env", "abs", i32::wrapping_abs)?;
    linker.func_wrap("env", "labs", i64::wrapping_abs)?;
    linker.func_wrap("env", "llabs", i64::wrapping_abs)?;
    functions! { linker,
        "frexp" => |guest, x: f64, to: u32| -> f64 { exponent(&mut guest, x, to) }
        "frexpl" => |guest, x: f64, to: u32| -> f64 { exponent(&mut guest, x, to) }
        "frexpf" => |guest, x: f32, to: u32| -> f32 { exponent(&mut guest, x.into(), to).map(|x| x as f32) }
        "modf" => |guest, x: f64, to: u32| -> f64 { guest.put(to, &x.trunc().to_le_bytes())?; Ok(part(x)) }
        "modfl" => |guest, x: f64, to: u32| -> f64 { guest.put(to, &x.trunc().to_le_bytes())?; Ok(part(x)) }
        "modff" => |guest, x: f32, to: u32| -> f32 { guest.put(to, &x.trunc().to_le_bytes())?; Ok(part(x.into()) as f32) }
        "atoi" => |guest, text: u32| -> i32 { Ok(integer(guest.text(text)?, 10).map_or(0, |n| n.signed().0 as i32)) }
        "atol" => |guest, text: u32| -> i64 { Ok(integer(guest.text(text)?, 10).map_or(0, |n| n.signed().0)) }
        "atoll" => |guest, text: u32| -> i64 { Ok(integer(guest.text(text)?, 10).map_or(0, |n| n.signed().0)) }
        "atof" => |guest, text: u32| -> f64 { Ok(double(guest.text(text)?).map_or(0.0, |found| found.value)) }
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

/// As a `long`: what has no place there becomes the least one.
fn whole(x: f64) -> i64 {
    if (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x) { x as i64 } else { i64::MIN }
}

/// What `frexp` gives.
fn exponent(guest: &mut Guest, x: f64, to: u32) -> Result<f64, Error> {
    let (fraction, exponent) = if x.is_finite() { libm::frexp(x) } else { (x, 0) };
    guest.put(to, &exponent.to_le_bytes())?;
    Ok(fraction)
}

/// The part after the point, with the sign.
fn part(x: f64) -> f64 {
    if x.is_infinite() { 0.0f64.copysign(x) } else { (x - x.trunc()).copysign(x) }
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
    let (value, used, fits) =
        double(guest.text(text)?).map_or((0.0, 0, true), |found| (found.value, found.used, found.fits));
    set_end(guest, end, text + used as u32)?;
    if !fits {
        guest.set_errno(ERANGE);
    }
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
