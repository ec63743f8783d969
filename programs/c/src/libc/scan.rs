//! `scanf` and its kin.

use super::functions;
use super::letters::is_space;
use super::memory::{Arguments, Guest, State};
use super::number::{Integer, Real, double, integer, prefix};
use wasmi::{Error, Linker};

/// A conversion of a format.
struct Conversion<'a> {
    skip: bool,
    width: Option<usize>,
    size: &'a [u8],
    kind: u8,
}

/// Reads `input` as a format says. Returns the number of values, or -1, and the bytes that were used.
fn scanned(guest: &mut Guest, input: &[u8], format: u32, list: u32) -> Result<(i32, usize), Error> {
    let format = guest.text(format)?.to_vec();
    let mut arguments = Arguments::new(list);
    let (mut at, mut used, mut count) = (0, 0, 0);
    let blanks = |from: usize| input[from..].iter().take_while(|byte| is_space(**byte)).count();
    while let Some(byte) = format.get(at) {
        at += 1;
        if is_space(*byte) {
            used += blanks(used);
            continue;
        }
        let literal = if *byte != b'%' {
            Some(*byte)
        } else if format.get(at) == Some(&b'%') {
            at += 1;
            used += blanks(used);
            Some(b'%')
        } else {
            None
        };
        if let Some(literal) = literal {
            match input.get(used) {
                Some(byte) if *byte == literal => used += 1,
                None if count == 0 => return Ok((-1, used)),
                _ => return Ok((count, used)),
            }
            continue;
        }
        let skip = format.get(at) == Some(&b'*');
        at += usize::from(skip);
        let digits = format[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let width = std::str::from_utf8(&format[at..at + digits]).ok().and_then(|digits| digits.parse().ok());
        at += digits;
        let sizes = format[at..].iter().take_while(|byte| b"hlLqjzt".contains(byte)).count();
        let size = &format[at..at + sizes];
        at += sizes;
        let Some(kind) = format.get(at).copied() else { break };
        at += 1;
        let set = if kind == b'[' { Some(set(&format, &mut at)) } else { None };
        if kind == b'n' {
            let to = arguments.pointer(guest)?;
            guest.put(to, &(used as i32).to_le_bytes())?;
            continue;
        }
        if !matches!(kind, b'c' | b'[') {
            used += blanks(used);
        }
        if used >= input.len() {
            return Ok((if count == 0 { -1 } else { count }, used));
        }
        let conversion = Conversion { skip, width, size, kind };
        match convert(guest, &input[used..], &conversion, set.as_ref(), &mut arguments)? {
            Some(taken) => {
                used += taken;
                count += i32::from(!skip);
            }
            None => return Ok((count, used)),
        }
    }
    Ok((count, used))
}

/// The characters of `[…]`, by their number.
fn set(format: &[u8], at: &mut usize) -> [bool; 256] {
    let without = format.get(*at) == Some(&b'^');
    *at += usize::from(without);
    let mut set = [false; 256];
    let start = *at;
    while let Some(byte) = format.get(*at).copied() {
        *at += 1;
        if byte == b']' && *at > start + 1 {
            break;
        }
        match (format.get(*at), format.get(*at + 1)) {
            (Some(b'-'), Some(last)) if *last != b']' => {
                for member in byte..=*last {
                    set[usize::from(member)] = true;
                }
                *at += 2;
            }
            _ => set[usize::from(byte)] = true,
        }
    }
    if without { set.map(|is| !is) } else { set }
}

/// Reads a value from the start of `input`; `None` if there is none.
fn convert(
    guest: &mut Guest,
    input: &[u8],
    conversion: &Conversion,
    set: Option<&[bool; 256]>,
    arguments: &mut Arguments,
) -> Result<Option<usize>, Error> {
    let Conversion { skip, width, size, kind } = conversion;
    let within = &input[..input.len().min(width.unwrap_or(usize::MAX))];
    let mut to = || if *skip { Ok(None) } else { arguments.pointer(guest).map(Some) };
    match kind {
        b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'p' => {
            let base = match kind {
                b'i' => 0,
                b'x' | b'X' | b'p' => 16,
                b'o' => 8,
                _ => 10,
            };
            let Some(mut found) = integer(within, base) else { return Ok(None) };
            if matches!(base, 0 | 16) {
                // As in glibc, `0x` without a digit is read, and is 0.
                found.used = found.used.max(prefix(within).unwrap_or(0));
            }
            if let Some(to) = to()? {
                let bytes = bits(&found, *kind).to_le_bytes();
                let bytes = match *size {
                    b"hh" => &bytes[..1],
                    b"h" => &bytes[..2],
                    b"" => &bytes[..4],
                    _ => &bytes[..],
                };
                guest.put(to, bytes)?;
            }
            Ok(Some(found.used))
        }
        b'f' | b'e' | b'g' | b'E' | b'G' | b'F' | b'a' => {
            let Some(Real { value, mut used, .. }) = double(within) else { return Ok(None) };
            if let Some(prefix) = prefix(within).filter(|prefix| used < *prefix) {
                // As in glibc, `0x` is no number, and `0x.` is 0.
                if within.get(prefix) != Some(&b'.') {
                    return Ok(None);
                }
                used = prefix + 1;
            }
            if let Some(to) = to()? {
                match *size {
                    b"" => guest.put(to, &(value as f32).to_le_bytes())?,
                    _ => guest.put(to, &value.to_le_bytes())?,
                }
            }
            Ok(Some(used))
        }
        b'c' => {
            let count = width.unwrap_or(1);
            if input.len() < count {
                return Ok(None);
            }
            if let Some(to) = to()? {
                guest.put(to, &input[..count])?;
            }
            Ok(Some(count))
        }
        b's' | b'[' => {
            let belongs = |byte: &u8| set.map_or(!is_space(*byte), |set| set[usize::from(*byte)]);
            let length = within.iter().take_while(|byte| belongs(byte)).count();
            if length == 0 {
                return Ok(None);
            }
            if let Some(to) = to()? {
                guest.put_text(to, &input[..length])?;
            }
            Ok(Some(length))
        }
        _ => Err(Error::new("scanf: a conversion that is not supported")),
    }
}

fn bits(found: &Integer, kind: u8) -> u64 {
    match kind {
        b'd' | b'i' => found.signed().0 as u64,
        _ => found.unsigned().0,
    }
}

pub fn link(linker: &mut Linker<State>) -> Result<(), Error> {
    functions! { linker,
        "scanf" => |guest, format: u32, list: u32| -> i32 { from_input(&mut guest, format, list) }
        "vscanf" => |guest, format: u32, list: u32| -> i32 { from_input(&mut guest, format, list) }
        "fscanf" => |guest, file: u32, format: u32, list: u32| -> i32 {
            if file == 1 { from_input(&mut guest, format, list) } else { Ok(-1) }
        }
        "sscanf" => |guest, text: u32, format: u32, list: u32| -> i32 { from_text(&mut guest, text, format, list) }
        "vsscanf" => |guest, text: u32, format: u32, list: u32| -> i32 { from_text(&mut guest, text, format, list) }
    }
    Ok(())
}

fn from_text(guest: &mut Guest, text: u32, format: u32, list: u32) -> Result<i32, Error> {
    let text = guest.text(text)?.to_vec();
    Ok(scanned(guest, &text, format, list)?.0)
}

fn from_input(guest: &mut Guest, format: u32, list: u32) -> Result<i32, Error> {
    let input = guest.state.streams.take_input();
    let result = scanned(guest, input.rest(), format, list);
    let used = result.as_ref().map_or(0, |(_, used)| *used);
    guest.state.streams.give_back(input, used);
    Ok(result?.0)
}
