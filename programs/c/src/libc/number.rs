//! Numbers at the start of a text.

use super::letters::is_space;

/// An integer: its magnitude, which saturates, and the bytes that it has.
pub struct Integer {
    pub negative: bool,
    pub magnitude: u128,
    pub used: usize,
}

/// Reads spaces, a sign and digits; `None` without a digit.
pub fn integer(text: &[u8], base: u32) -> Option<Integer> {
    let mut at = text.iter().take_while(|byte| is_space(**byte)).count();
    let negative = text.get(at) == Some(&b'-');
    if matches!(text.get(at), Some(b'-' | b'+')) {
        at += 1;
    }
    let is_digit = |at: usize, base: u32| text.get(at).is_some_and(|byte| char::from(*byte).is_digit(base));
    let is_hex = text.get(at) == Some(&b'0') && matches!(text.get(at + 1), Some(b'x' | b'X')) && is_digit(at + 2, 16);
    let base = match base {
        0 if is_hex => 16,
        0 if text.get(at) == Some(&b'0') => 8,
        0 => 10,
        base => base.clamp(2, 36),
    };
    if base == 16 && is_hex {
        at += 2;
    }
    let start = at;
    let mut magnitude = 0u128;
    while let Some(digit) = text.get(at).and_then(|byte| char::from(*byte).to_digit(base)) {
        magnitude = magnitude.saturating_mul(base.into()).saturating_add(digit.into());
        at += 1;
    }
    (at > start).then_some(Integer { negative, magnitude, used: at })
}

impl Integer {
    /// As a `long`, and whether it has room there.
    pub fn signed(&self) -> (i64, bool) {
        let value = i128::try_from(self.magnitude).unwrap_or(i128::MAX);
        let value = if self.negative { -value } else { value };
        let bound = if self.negative { i64::MIN } else { i64::MAX };
        i64::try_from(value).map_or((bound, false), |value| (value, true))
    }

    /// As an `unsigned long`, and whether it has room there.
    pub fn unsigned(&self) -> (u64, bool) {
        match u64::try_from(self.magnitude) {
            Ok(value) if self.negative => (value.wrapping_neg(), true),
            Ok(value) => (value, true),
            Err(_) => (u64::MAX, false),
        }
    }
}

/// A number with a fraction, and the bytes that it has.
pub struct Real {
    pub value: f64,
    pub used: usize,
    /// Whether it is neither too large nor too small for a `double`.
    pub fits: bool,
}

pub fn double(text: &[u8]) -> Option<Real> {
    let mut at = text.iter().take_while(|byte| is_space(**byte)).count();
    let negative = text.get(at) == Some(&b'-');
    if matches!(text.get(at), Some(b'-' | b'+')) {
        at += 1;
    }
    let real = |value: f64, used: usize, fits: bool| {
        Some(Real { value: if negative { -value } else { value }, used: at + used, fits })
    };
    let rest = text.get(at..)?;
    let begins = |word: &[u8]| rest.get(..word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word));
    for word in [&b"infinity"[..], &b"inf"[..]] {
        if begins(word) {
            return real(f64::INFINITY, word.len(), true);
        }
    }
    if begins(b"nan") {
        return real(f64::NAN, 3 + tag(&rest[3..]), true);
    }
    if begins(b"0x")
        && let Some((value, used, fits)) = hexadecimal(&rest[2..])
    {
        return real(value, 2 + used, fits);
    }
    let used = decimal(rest)?;
    // Such digits are a number in Rust, too.
    let value: f64 = std::str::from_utf8(&rest[..used]).ok()?.parse().ok()?;
    let mantissa = rest[..used].iter().take_while(|byte| !matches!(byte, b'e' | b'E'));
    let is_zero = mantissa.clone().all(|byte| matches!(byte, b'0' | b'.'));
    real(value, used, value.is_normal() || is_zero)
}

/// The bytes of a sign and of `0x`, if that is there.
pub fn prefix(text: &[u8]) -> Option<usize> {
    let blanks = text.iter().take_while(|byte| is_space(**byte)).count();
    let at = blanks + usize::from(matches!(text.get(blanks), Some(b'-' | b'+')));
    (text.get(at) == Some(&b'0') && matches!(text.get(at + 1), Some(b'x' | b'X'))).then_some(at + 2)
}

/// The bytes of `(...)` after `nan`.
fn tag(rest: &[u8]) -> usize {
    let is_inside = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
    let inside = rest.iter().skip(1).take_while(is_inside).count();
    if rest.first() == Some(&b'(') && rest.get(1 + inside) == Some(&b')') { inside + 2 } else { 0 }
}

/// The bytes of a decimal number.
fn decimal(text: &[u8]) -> Option<usize> {
    let digits = |at: usize| text.iter().skip(at).take_while(|byte| byte.is_ascii_digit()).count();
    let mut at = digits(0);
    let mut count = at;
    if text.get(at) == Some(&b'.') {
        let fraction = digits(at + 1);
        count += fraction;
        at += 1 + fraction;
    }
    if count == 0 {
        return None;
    }
    Some(at + exponent(&text[at..], *b"eE").map_or(0, |(_, used)| used))
}

/// An exponent after its letter, and the bytes of both.
fn exponent(text: &[u8], letters: [u8; 2]) -> Option<(i64, usize)> {
    text.first().filter(|byte| letters.contains(byte))?;
    let sign = usize::from(matches!(text.get(1), Some(b'-' | b'+')));
    let digits = text.iter().skip(1 + sign).take_while(|byte| byte.is_ascii_digit());
    let (value, count) = digits
        .fold((0i64, 0), |(value, count), digit| ((value * 10 + i64::from(digit - b'0')).min(1 << 32), count + 1));
    (count > 0).then(|| (if text[1] == b'-' { -value } else { value }, 1 + sign + count))
}

/// A hexadecimal number after its `0x`: its value, its bytes, and whether it fits.
fn hexadecimal(text: &[u8]) -> Option<(f64, usize, bool)> {
    let (mut mantissa, mut scale, mut sticky, mut count, mut at) = (0u64, 0i64, false, 0, 0);
    let mut in_fraction = false;
    while let Some(byte) = text.get(at) {
        if *byte == b'.' && !in_fraction {
            in_fraction = true;
        } else if let Some(digit) = char::from(*byte).to_digit(16) {
            count += 1;
            if mantissa >> 58 == 0 {
                mantissa = mantissa << 4 | u64::from(digit);
                scale -= if in_fraction { 4 } else { 0 };
            } else {
                sticky |= digit != 0;
                scale += if in_fraction { 0 } else { 4 };
            }
        } else {
            break;
        }
        at += 1;
    }
    if count == 0 {
        return None;
    }
    if let Some((power, used)) = exponent(&text[at..], *b"pP") {
        scale += power;
        at += used;
    }
    let value = libm::ldexp((mantissa | u64::from(sticky)) as f64, scale.clamp(-5000, 5000) as i32);
    Some((value, at, value.is_normal() || mantissa == 0))
}
