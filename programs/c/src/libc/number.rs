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
pub fn double(text: &[u8]) -> Option<(f64, usize)> {
    let start = text.iter().take_while(|byte| is_space(**byte)).count();
    let mut at = start;
    let negative = text.get(at) == Some(&b'-');
    if matches!(text.get(at), Some(b'-' | b'+')) {
        at += 1;
    }
    let begins = |word: &[u8]| text[at..].get(..word.len()).is_some_and(|part| part.eq_ignore_ascii_case(word));
    for (word, value) in [(&b"infinity"[..], f64::INFINITY), (&b"inf"[..], f64::INFINITY), (&b"nan"[..], f64::NAN)] {
        if begins(word) {
            return Some((if negative { -value } else { value }, at + word.len()));
        }
    }
    if begins(b"0x") {
        let integer = integer(&text[at..], 16)?;
        let value = integer.magnitude as f64;
        return Some((if negative { -value } else { value }, at + integer.used));
    }
    let digits = |at: usize| text[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let whole = digits(at);
    at += whole;
    let mut fraction = 0;
    if text.get(at) == Some(&b'.') {
        fraction = digits(at + 1);
        if whole + fraction > 0 {
            at += 1 + fraction;
        }
    }
    if whole + fraction == 0 {
        return None;
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(text.get(at + 1), Some(b'-' | b'+')));
        let exponent = digits((at + 1 + sign).min(text.len()));
        if exponent > 0 {
            at += 1 + sign + exponent;
        }
    }
    let value = std::str::from_utf8(&text[start..at]).ok()?.parse().ok()?;
    Some((value, at))
}
