//! `printf` and its kin.

use super::functions;
use super::heap::written;
use super::memory::{Arguments, Guest, State, narrow, outside};
use wasmi::{Caller, Error, Linker};

/// How a conversion shows its value.
#[derive(Default)]
struct Form {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

/// No conversion is wider, as its text lies in memory.
const MOST: i64 = 1 << 20;

/// The text of a format with its arguments.
pub fn formatted(guest: &Guest, format: u32, arguments: u32) -> Result<Vec<u8>, Error> {
    let format = guest.text(format)?;
    let mut arguments = Arguments::new(arguments);
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(byte) = format.get(at) {
        at += 1;
        if *byte != b'%' {
            out.push(*byte);
            continue;
        }
        let mut form = Form::default();
        while let Some(flag) = format.get(at) {
            match flag {
                b'-' => form.left = true,
                b'0' => form.zero = true,
                b'+' => form.plus = true,
                b' ' => form.space = true,
                b'#' => form.alternate = true,
                b'\'' => {}
                _ => break,
            }
            at += 1;
        }
        if let Some(width) = number(guest, format, &mut at, &mut arguments)? {
            form.left |= width < 0;
            form.width = width.unsigned_abs() as usize;
        }
        if format.get(at) == Some(&b'.') {
            at += 1;
            let precision = number(guest, format, &mut at, &mut arguments)?.unwrap_or(0);
            form.precision = usize::try_from(precision).ok();
        }
        let sizes = format[at..].iter().take_while(|byte| b"hlLqjzt".contains(byte)).count();
        let size = &format[at..at + sizes];
        at += sizes;
        let Some(kind) = format.get(at) else { break };
        at += 1;
        convert(guest, *kind, size, &form, &mut arguments, &mut out)?;
    }
    Ok(out)
}

/// A width or a precision: digits, or `*` for an argument.
fn number(guest: &Guest, format: &[u8], at: &mut usize, arguments: &mut Arguments) -> Result<Option<i64>, Error> {
    if format.get(*at) == Some(&b'*') {
        *at += 1;
        return Ok(Some(i64::from(arguments.long(guest)? as i32).clamp(-MOST, MOST)));
    }
    let digits = format[*at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
    let value =
        format[*at..*at + digits].iter().fold(0i64, |sum, digit| (sum * 10 + i64::from(digit - b'0')).min(MOST));
    *at += digits;
    Ok((digits > 0).then_some(value))
}

fn convert(
    guest: &Guest,
    kind: u8,
    size: &[u8],
    form: &Form,
    arguments: &mut Arguments,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    match kind {
        b'd' | b'i' => {
            let value = arguments.long(guest)? as i64;
            let value = match size {
                b"" => i64::from(value as i32),
                b"h" => i64::from(value as i16),
                b"hh" => i64::from(value as i8),
                _ => value,
            };
            whole(&value.unsigned_abs().to_string(), sign(value < 0, form), form, out);
        }
        b'u' | b'x' | b'X' | b'o' => {
            let value = arguments.long(guest)?;
            let value = match size {
                b"" => u64::from(value as u32),
                b"h" => u64::from(value as u16),
                b"hh" => u64::from(value as u8),
                _ => value,
            };
            let (digits, prefix) = match kind {
                b'u' => (value.to_string(), ""),
                b'x' => (format!("{value:x}"), "0x"),
                b'X' => (format!("{value:X}"), "0X"),
                _ => (format!("{value:o}"), "0"),
            };
            let prefix = if form.alternate && value != 0 { prefix } else { "" };
            if kind == b'o' && form.alternate {
                // The zero counts for the precision.
                let least = form.precision.unwrap_or(1).max(digits.len() + usize::from(value != 0));
                let digits = if value == 0 && form.precision == Some(0) { "0".to_owned() } else { digits };
                filled("", &format!("{digits:0>least$}"), form.zero && form.precision.is_none(), form, out);
            } else {
                whole(&digits, prefix, form, out);
            }
        }
        b'c' => pad(&[arguments.long(guest)? as u8], form, out),
        b's' => {
            let at = arguments.pointer(guest)?;
            let text = match (at, form.precision) {
                (0, _) => &b"(null)"[..],
                (_, Some(most)) => guest.text_within(at, most as u32)?,
                (_, None) => guest.text(at)?,
            };
            pad(text, form, out);
        }
        b'p' => {
            let at = arguments.pointer(guest)?;
            let text = if at == 0 { "(nil)".to_owned() } else { format!("0x{at:x}") };
            pad(text.as_bytes(), form, out);
        }
        b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => {
            let value = arguments.double(guest)?;
            real(value, kind, form, out);
        }
        b'%' => out.push(b'%'),
        _ => return Err(Error::new("printf: a conversion that is not supported")),
    }
    Ok(())
}

fn sign(negative: bool, form: &Form) -> &'static str {
    match (negative, form.plus, form.space) {
        (true, ..) => "-",
        (false, true, _) => "+",
        (false, false, true) => " ",
        _ => "",
    }
}

fn whole(digits: &str, prefix: &str, form: &Form, out: &mut Vec<u8>) {
    let digits = match form.precision {
        Some(0) if digits == "0" => String::new(),
        Some(least) => format!("{digits:0>least$}"),
        None => digits.to_owned(),
    };
    filled(prefix, &digits, form.zero && form.precision.is_none(), form, out);
}

/// A sign or prefix and digits, with zeros between them or spaces around.
fn filled(prefix: &str, digits: &str, zero: bool, form: &Form, out: &mut Vec<u8>) {
    if zero && !form.left {
        let width = form.width.saturating_sub(prefix.len());
        pad(format!("{prefix}{digits:0>width$}").as_bytes(), form, out);
    } else {
        pad(format!("{prefix}{digits}").as_bytes(), form, out);
    }
}

fn pad(text: &[u8], form: &Form, out: &mut Vec<u8>) {
    let blanks = form.width.saturating_sub(text.len());
    if form.left {
        out.extend(text);
    }
    out.extend(std::iter::repeat_n(b' ', blanks));
    if !form.left {
        out.extend(text);
    }
}

fn real(value: f64, kind: u8, form: &Form, out: &mut Vec<u8>) {
    let upper = kind.is_ascii_uppercase();
    let prefix = sign(value.is_sign_negative(), form);
    if !value.is_finite() {
        let word = if value.is_nan() { "nan" } else { "inf" };
        let word = if upper { word.to_uppercase() } else { word.to_owned() };
        return filled(prefix, &word, false, form, out);
    }
    let value = value.abs();
    let precision = form.precision.unwrap_or(6);
    if kind.eq_ignore_ascii_case(&b'a') {
        let (prefix, digits) = (format!("{prefix}0x"), hexadecimal(value, form.precision, form.alternate));
        let (prefix, digits) = if upper { (prefix.to_uppercase(), digits.to_uppercase()) } else { (prefix, digits) };
        return filled(&prefix, &digits, form.zero, form, out);
    }
    let mut digits = match kind.to_ascii_lowercase() {
        b'f' => fixed(value, precision, form.alternate),
        b'e' => scientific(value, precision, form.alternate),
        _ => general(value, precision.max(1), form.alternate),
    };
    if upper {
        digits = digits.to_uppercase();
    }
    filled(prefix, &digits, form.zero, form, out);
}

fn fixed(value: f64, precision: usize, point: bool) -> String {
    let digits = format!("{value:.precision$}");
    if point && precision == 0 { format!("{digits}.") } else { digits }
}

fn scientific(value: f64, precision: usize, point: bool) -> String {
    let digits = format!("{value:.precision$e}");
    let (mantissa, exponent) = digits.split_once('e').unwrap_or((&digits, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    let point = if point && precision == 0 { "." } else { "" };
    format!("{mantissa}{point}e{sign}{exponent:0>2}")
}

fn general(value: f64, precision: usize, keep: bool) -> String {
    let rounded = format!("{value:.*e}", precision - 1);
    let exponent: i64 = rounded.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let is_fixed = exponent >= -4 && exponent < precision as i64;
    let digits = match is_fixed {
        true => fixed(value, (precision as i64 - 1 - exponent) as usize, keep),
        false => scientific(value, precision - 1, keep),
    };
    if keep {
        return digits;
    }
    let (mantissa, exponent) = match digits.split_once('e') {
        Some((mantissa, exponent)) => (mantissa, format!("e{exponent}")),
        None => (digits.as_str(), String::new()),
    };
    let mantissa = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    format!("{mantissa}{exponent}")
}

/// The digits of `%a` after their `0x`.
fn hexadecimal(value: f64, precision: Option<usize>, point: bool) -> String {
    let bits = value.to_bits();
    let (mut mantissa, exponent) = match (bits >> 52 & 0x7ff, bits & ((1 << 52) - 1)) {
        (0, 0) => (0, 0),
        (0, fraction) => (fraction, -1022),
        (exponent, fraction) => (fraction | 1 << 52, exponent as i64 - 1023),
    };
    // 13 digits after the point.
    let digits = match precision {
        Some(places) if places < 13 => {
            let unit = 1u64 << (52 - 4 * places);
            let half = unit / 2;
            let rest = mantissa & (unit - 1);
            mantissa -= rest;
            if rest > half || rest == half && mantissa & unit != 0 {
                mantissa += unit;
            }
            format!("{:013x}", mantissa & ((1 << 52) - 1))[..places].to_owned()
        }
        Some(places) => format!("{:013x}{}", mantissa & ((1 << 52) - 1), "0".repeat(places - 13)),
        None => format!("{:013x}", mantissa & ((1 << 52) - 1)).trim_end_matches('0').to_owned(),
    };
    let dot = if digits.is_empty() && !point { "" } else { "." };
    format!("{:x}{dot}{digits}p{exponent:+}", mantissa >> 52)
}

fn length(text: &[u8]) -> Result<i32, Error> {
    i32::try_from(text.len()).map_err(|_| outside())
}

/// Writes a text with its zero into a buffer, as far as it has room.
fn bounded(guest: &mut Guest, to: u32, size: u64, text: &[u8]) -> Result<i32, Error> {
    if size > 0 {
        guest.put_text(to, &text[..text.len().min(narrow(size) as usize - 1)])?;
    }
    length(text)
}

pub fn link(linker: &mut Linker<State>) -> Result<(), Error> {
    functions! { linker,
        "printf" => |guest, format: u32, list: u32| -> i32 { to_file(&mut guest, 2, format, list) }
        "vprintf" => |guest, format: u32, list: u32| -> i32 { to_file(&mut guest, 2, format, list) }
        "fprintf" => |guest, file: u32, format: u32, list: u32| -> i32 { to_file(&mut guest, file, format, list) }
        "vfprintf" => |guest, file: u32, format: u32, list: u32| -> i32 { to_file(&mut guest, file, format, list) }
        "dprintf" => |guest, descriptor: u32, format: u32, list: u32| -> i32 {
            to_file(&mut guest, descriptor.saturating_add(1), format, list)
        }
        "sprintf" => |guest, to: u32, format: u32, list: u32| -> i32 { to_text(&mut guest, to, format, list) }
        "vsprintf" => |guest, to: u32, format: u32, list: u32| -> i32 { to_text(&mut guest, to, format, list) }
        "snprintf" => |guest, to: u32, size: u64, format: u32, list: u32| -> i32 {
            let text = formatted(&guest, format, list)?;
            bounded(&mut guest, to, size, &text)
        }
        "vsnprintf" => |guest, to: u32, size: u64, format: u32, list: u32| -> i32 {
            let text = formatted(&guest, format, list)?;
            bounded(&mut guest, to, size, &text)
        }
    }
    linker.func_wrap("env", "asprintf", |mut caller: Caller<State>, to: u32, format: u32, list: u32| {
        let text = formatted(&Guest::of(&mut caller)?, format, list)?;
        let at = written(&mut caller, &text)?;
        Guest::of(&mut caller)?.put(to, &at.to_le_bytes())?;
        length(&text)
    })?;
    Ok(())
}

fn to_file(guest: &mut Guest, file: u32, format: u32, list: u32) -> Result<i32, Error> {
    let text = formatted(guest, format, list)?;
    guest.state.streams.write(file, &text);
    length(&text)
}

fn to_text(guest: &mut Guest, to: u32, format: u32, list: u32) -> Result<i32, Error> {
    let text = formatted(guest, format, list)?;
    guest.put_text(to, &text)?;
    length(&text)
}
