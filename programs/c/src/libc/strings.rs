//! `string.h`.

use super::functions;
use super::memory::{Guest, State, narrow};
use std::cmp::Ordering;
use wasmi::{Error, Linker};

fn order(ordering: Ordering) -> i32 {
    ordering as i32
}

fn length(text: &[u8]) -> u32 {
    text.len() as u32
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    if part.is_empty() { Some(0) } else { text.windows(part.len()).position(|window| window == part) }
}

/// The address of a place in the text at `at`, or 0.
fn place(at: u32, found: Option<usize>) -> u32 {
    found.map_or(0, |found| at + found as u32)
}

fn lower(text: &[u8]) -> Vec<u8> {
    text.to_ascii_lowercase()
}

/// The next part of a text that a set of characters divides. Returns it, and where the rest begins.
fn token(guest: &mut Guest, text: u32, set: u32) -> Result<(u32, u32), Error> {
    if text == 0 {
        return Ok((0, 0));
    }
    let set = guest.text(set)?.to_vec();
    let rest = guest.text(text)?;
    let start = rest.iter().take_while(|byte| set.contains(byte)).count();
    let size = rest[start..].iter().take_while(|byte| !set.contains(byte)).count();
    if size == 0 {
        return Ok((0, 0));
    }
    let end = start + size;
    let next = if end < rest.len() { text + end as u32 + 1 } else { 0 };
    if next != 0 {
        guest.put(next - 1, &[0])?;
    }
    Ok((text + start as u32, next))
}

pub fn link(linker: &mut Linker<State>) -> Result<(), Error> {
    functions! { linker,
        "memcpy" => |guest, to: u32, from: u32, size: u64| -> u32 { moved(&mut guest, to, from, narrow(size)) }
        "memmove" => |guest, to: u32, from: u32, size: u64| -> u32 { moved(&mut guest, to, from, narrow(size)) }
        "memset" => |guest, to: u32, c: i32, size: u64| -> u32 { guest.range_mut(to, narrow(size))?.fill(c as u8); Ok(to) }
        "memcmp" => |guest, a: u32, b: u32, size: u64| -> i32 { Ok(order(guest.range(a, narrow(size))?.cmp(guest.range(b, narrow(size))?))) }
        "memchr" => |guest, at: u32, c: i32, size: u64| -> u32 {
            Ok(place(at, guest.range(at, narrow(size))?.iter().position(|byte| *byte == c as u8)))
        }
        "memccpy" => |guest, to: u32, from: u32, c: i32, size: u64| -> u32 {
            let found = guest.range(from, narrow(size))?.iter().position(|byte| *byte == c as u8);
            moved(&mut guest, to, from, found.map_or(narrow(size), |found| found as u32 + 1))?;
            Ok(found.map_or(0, |found| to + found as u32 + 1))
        }
        "memmem" => |guest, at: u32, size: u64, part: u32, length: u64| -> u32 {
            Ok(place(at, find(guest.range(at, narrow(size))?, guest.range(part, narrow(length))?)))
        }
        "strlen" => |guest, text: u32| -> u64 { Ok(length(guest.text(text)?).into()) }
        "strnlen" => |guest, text: u32, most: u64| -> u64 { Ok(length(guest.text_within(text, narrow(most))?).into()) }
        "strcpy" => |guest, to: u32, from: u32| -> u32 {
            let size = length(guest.text(from)?) + 1;
            moved(&mut guest, to, from, size)
        }
        "stpcpy" => |guest, to: u32, from: u32| -> u32 {
            let size = length(guest.text(from)?);
            moved(&mut guest, to, from, size + 1)?;
            Ok(to + size)
        }
        "strncpy" => |guest, to: u32, from: u32, size: u64| -> u32 {
            let mut text = guest.text_within(from, narrow(size))?.to_vec();
            text.resize(narrow(size) as usize, 0);
            guest.put(to, &text)?;
            Ok(to)
        }
        "strcat" => |guest, to: u32, from: u32| -> u32 {
            let (end, text) = (to + length(guest.text(to)?), guest.text(from)?.to_vec());
            guest.put_text(end, &text)?;
            Ok(to)
        }
        "strncat" => |guest, to: u32, from: u32, most: u64| -> u32 {
            let (end, text) = (to + length(guest.text(to)?), guest.text_within(from, narrow(most))?.to_vec());
            guest.put_text(end, &text)?;
            Ok(to)
        }
        "strcmp" => |guest, a: u32, b: u32| -> i32 { Ok(order(guest.text(a)?.cmp(guest.text(b)?))) }
        "strcoll" => |guest, a: u32, b: u32| -> i32 { Ok(order(guest.text(a)?.cmp(guest.text(b)?))) }
        "strncmp" => |guest, a: u32, b: u32, most: u64| -> i32 {
            Ok(order(guest.text_within(a, narrow(most))?.cmp(guest.text_within(b, narrow(most))?)))
        }
        "strcasecmp" => |guest, a: u32, b: u32| -> i32 { Ok(order(lower(guest.text(a)?).cmp(&lower(guest.text(b)?)))) }
        "strncasecmp" => |guest, a: u32, b: u32, most: u64| -> i32 {
            Ok(order(lower(guest.text_within(a, narrow(most))?).cmp(&lower(guest.text_within(b, narrow(most))?))))
        }
        "strchr" => |guest, text: u32, c: i32| -> u32 {
            let found = guest.text(text)?;
            if c as u8 == 0 {
                return Ok(text + length(found));
            }
            Ok(place(text, found.iter().position(|byte| *byte == c as u8)))
        }
        "strrchr" => |guest, text: u32, c: i32| -> u32 {
            let found = guest.text(text)?;
            if c as u8 == 0 {
                return Ok(text + length(found));
            }
            Ok(place(text, found.iter().rposition(|byte| *byte == c as u8)))
        }
        "strstr" => |guest, text: u32, part: u32| -> u32 { Ok(place(text, find(guest.text(text)?, guest.text(part)?))) }
        "strspn" => |guest, text: u32, set: u32| -> u64 {
            let set = guest.text(set)?;
            Ok(guest.text(text)?.iter().take_while(|byte| set.contains(byte)).count() as u64)
        }
        "strcspn" => |guest, text: u32, set: u32| -> u64 {
            let set = guest.text(set)?;
            Ok(guest.text(text)?.iter().take_while(|byte| !set.contains(byte)).count() as u64)
        }
        "strpbrk" => |guest, text: u32, set: u32| -> u32 {
            let set = guest.text(set)?;
            Ok(place(text, guest.text(text)?.iter().position(|byte| set.contains(byte))))
        }
        "strtok" => |guest, text: u32, set: u32| -> u32 {
            let from = if text == 0 { guest.state.token } else { text };
            let (found, next) = token(&mut guest, from, set)?;
            guest.state.token = next;
            Ok(found)
        }
        "strtok_r" => |guest, text: u32, set: u32, state: u32| -> u32 {
            let from = if text == 0 { guest.word(state)? } else { text };
            let (found, next) = token(&mut guest, from, set)?;
            guest.put(state, &next.to_le_bytes())?;
            Ok(found)
        }
        "strsep" => |guest, state: u32, set: u32| -> u32 {
            let text = guest.word(state)?;
            if text == 0 {
                return Ok(0);
            }
            let set = guest.text(set)?.to_vec();
            let found = guest.text(text)?.iter().position(|byte| set.contains(byte));
            let next = found.map_or(0, |found| text + found as u32 + 1);
            if next != 0 {
                guest.put(next - 1, &[0])?;
            }
            guest.put(state, &next.to_le_bytes())?;
            Ok(text)
        }
    }
    Ok(())
}

fn moved(guest: &mut Guest, to: u32, from: u32, size: u32) -> Result<u32, Error> {
    guest.range(from, size)?;
    guest.range(to, size)?;
    guest.memory.copy_within(from as usize..from as usize + size as usize, to as usize);
    Ok(to)
}
