//! `ctype.h`, for the characters of ASCII.

use super::memory::State;
use wasmi::{Error, Linker};

/// Whether a character is of a kind.
type Kind = fn(u8) -> bool;

pub fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | 9..=13)
}

pub fn link(linker: &mut Linker<State>) -> Result<(), Error> {
    let kinds: [(&str, Kind); 13] = [
        ("isalnum", |c| c.is_ascii_alphanumeric()),
        ("isalpha", |c| c.is_ascii_alphabetic()),
        ("isascii", |c| c.is_ascii()),
        ("isblank", |c| c == b' ' || c == b'\t'),
        ("iscntrl", |c| c.is_ascii_control()),
        ("isdigit", |c| c.is_ascii_digit()),
        ("isgraph", |c| c.is_ascii_graphic()),
        ("islower", |c| c.is_ascii_lowercase()),
        ("isprint", |c| c.is_ascii_graphic() || c == b' '),
        ("ispunct", |c| c.is_ascii_punctuation()),
        ("isspace", is_space),
        ("isupper", |c| c.is_ascii_uppercase()),
        ("isxdigit", |c| c.is_ascii_hexdigit()),
    ];
    for (name, is) in kinds {
        linker.func_wrap("env", name, move |c: i32| i32::from(u8::try_from(c).is_ok_and(is)))?;
    }
    let change = |c: i32, change: fn(&u8) -> u8| u8::try_from(c).map_or(c, |c| i32::from(change(&c)));
    linker.func_wrap("env", "tolower", move |c: i32| change(c, u8::to_ascii_lowercase))?;
    linker.func_wrap("env", "toupper", move |c: i32| change(c, u8::to_ascii_uppercase))?;
    Ok(())
}
