//! Literals of C, and the constants of its headers, with the widths that programs/c has.

use super::number::{Number, Type};
use super::text::{Kind, Token, bare, operators};

/// The number that an expression is, if it has literals alone.
pub(crate) fn number(tokens: &[Token]) -> Option<Number> {
    let tokens = bare(tokens);
    // The last operator that binds least is computed last.
    for signs in [&["+", "-"][..], &["*", "/", "%"]] {
        if let Some(at) = operators(tokens, signs).pop() {
            return number(&tokens[..at])?.computed(tokens[at].text, number(&tokens[at + 1..])?);
        }
    }
    match tokens {
        [sign, rest @ ..] if sign.is("-") => number(rest).map(Number::negated),
        [sign, rest @ ..] if sign.is("+") => number(rest),
        [one] => match one.kind {
            Kind::Number => whole(one.text).or_else(|| real(one.text)),
            Kind::Char => character(one.text),
            Kind::Name => constant(one.text),
            Kind::Text | Kind::Sign => None,
        },
        _ => None,
    }
}

/// The text that an expression is, if it is a literal. It ends before a byte of 0.
pub(crate) fn text(tokens: &[Token]) -> Option<String> {
    let tokens = bare(tokens);
    if tokens.is_empty() || tokens.iter().any(|token| token.kind != Kind::Text) {
        return None;
    }
    let mut bytes = Vec::new();
    for token in tokens {
        bytes.extend(unescaped(unquoted(token.text, '"')?)?);
    }
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    String::from_utf8(bytes).ok()
}

fn whole(text: &str) -> Option<Number> {
    let lower = text.to_ascii_lowercase();
    let (radix, rest) = match lower.as_bytes() {
        [b'0', b'x', ..] => (16, &lower[2..]),
        [b'0', b'b', ..] => (2, &lower[2..]),
        [b'0', b'0'..=b'9', ..] => (8, &lower[1..]),
        _ => (10, lower.as_str()),
    };
    let end = rest.find(|c: char| !c.is_digit(radix)).unwrap_or(rest.len());
    let value = i128::from_str_radix(&rest[..end], radix).ok()?;
    let (is_unsigned, is_long) = match &rest[end..] {
        "" => (false, false),
        "u" => (true, false),
        "l" | "ll" => (false, true),
        "ul" | "ull" | "lu" | "llu" => (true, true),
        _ => return None,
    };
    let is_within = |of, most: i128| {
        let fits = match of {
            Type::Int => !is_unsigned && !is_long,
            Type::Unsigned => !is_long && (is_unsigned || radix != 10),
            Type::Long => !is_unsigned,
            _ => true,
        };
        fits && value <= most
    };
    let types = [
        (Type::Int, i32::MAX.into()),
        (Type::Unsigned, u32::MAX.into()),
        (Type::Long, i64::MAX.into()),
        (Type::UnsignedLong, u64::MAX.into()),
    ];
    types.into_iter().find(|(of, most)| is_within(*of, *most)).map(|(of, _)| Number::whole(of, value))
}

fn real(text: &str) -> Option<Number> {
    let lower = text.to_ascii_lowercase();
    // `parse` takes names such as `inf` too.
    let is_decimal = |text: &str| text.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | '+' | '-'));
    let is_real = lower.contains(['.', 'e']);
    let (digits, suffix) = lower.split_at(lower.find(['f', 'l']).unwrap_or(lower.len()));
    match suffix {
        _ if !is_real || !is_decimal(digits) => None,
        "f" => digits.parse().ok().map(Number::float),
        "" | "l" => digits.parse().ok().map(Number::double),
        _ => None,
    }
}

fn character(text: &str) -> Option<Number> {
    match unescaped(unquoted(text, '\'')?)?[..] {
        [byte] => Some(Number::whole(Type::Int, (byte as i8).into())),
        _ => None,
    }
}

fn constant(name: &str) -> Option<Number> {
    let (of, value): (Type, i128) = match name {
        "true" | "EXIT_FAILURE" => (Type::Int, 1),
        "false" | "EXIT_SUCCESS" => (Type::Int, 0),
        "EOF" => (Type::Int, -1),
        "CHAR_BIT" => (Type::Int, 8),
        "CHAR_MAX" | "SCHAR_MAX" | "INT8_MAX" => (Type::Int, i8::MAX.into()),
        "CHAR_MIN" | "SCHAR_MIN" | "INT8_MIN" => (Type::Int, i8::MIN.into()),
        "UCHAR_MAX" | "UINT8_MAX" => (Type::Int, u8::MAX.into()),
        "SHRT_MAX" | "INT16_MAX" => (Type::Int, i16::MAX.into()),
        "SHRT_MIN" | "INT16_MIN" => (Type::Int, i16::MIN.into()),
        "USHRT_MAX" | "UINT16_MAX" => (Type::Int, u16::MAX.into()),
        "INT_MAX" | "INT32_MAX" => (Type::Int, i32::MAX.into()),
        "INT_MIN" | "INT32_MIN" => (Type::Int, i32::MIN.into()),
        "UINT_MAX" | "UINT32_MAX" => (Type::Unsigned, u32::MAX.into()),
        "LONG_MAX" | "LLONG_MAX" | "INT64_MAX" | "INTMAX_MAX" | "INTPTR_MAX" | "PTRDIFF_MAX" => {
            (Type::Long, i64::MAX.into())
        }
        "LONG_MIN" | "LLONG_MIN" | "INT64_MIN" | "INTMAX_MIN" | "INTPTR_MIN" | "PTRDIFF_MIN" => {
            (Type::Long, i64::MIN.into())
        }
        "ULONG_MAX" | "ULLONG_MAX" | "UINT64_MAX" | "UINTMAX_MAX" | "UINTPTR_MAX" | "SIZE_MAX" => {
            (Type::UnsignedLong, u64::MAX.into())
        }
        "DBL_EPSILON" => return Some(Number::double(f64::EPSILON)),
        "DBL_MAX" => return Some(Number::double(f64::MAX)),
        "DBL_MIN" => return Some(Number::double(f64::MIN_POSITIVE)),
        "FLT_EPSILON" => return Some(Number::float(f32::EPSILON)),
        "FLT_MAX" => return Some(Number::float(f32::MAX)),
        "FLT_MIN" => return Some(Number::float(f32::MIN_POSITIVE)),
        "M_PI" => return Some(Number::double(std::f64::consts::PI)),
        "M_E" => return Some(Number::double(std::f64::consts::E)),
        _ => return None,
    };
    Some(Number::whole(of, value))
}

fn unquoted(literal: &str, quote: char) -> Option<&str> {
    literal.strip_prefix(quote)?.strip_suffix(quote)
}

/// The bytes of what is between quotes.
fn unescaped(quoted: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = quoted;
    while let Some(first) = rest.chars().next() {
        rest = &rest[first.len_utf8()..];
        if first != '\\' {
            bytes.extend(first.encode_utf8(&mut [0; 4]).bytes());
            continue;
        }
        let escape = rest.chars().next()?;
        let (digits, radix) = match escape {
            '0'..='7' => (leading(rest, 3, 8), 8),
            'x' => (leading(&rest[1..], usize::MAX, 16), 16),
            'u' => (leading(&rest[1..], 4, 16), 16),
            'U' => (leading(&rest[1..], 8, 16), 16),
            _ => ("", 10),
        };
        match escape {
            '0'..='7' | 'x' => bytes.push(byte(digits, radix)?),
            'u' | 'U' if digits.len() == if escape == 'u' { 4 } else { 8 } => {
                let c = char::from_u32(u32::from_str_radix(digits, radix).ok()?)?;
                bytes.extend(c.encode_utf8(&mut [0; 4]).bytes());
            }
            'a' => bytes.push(7),
            'b' => bytes.push(8),
            't' => bytes.push(b'\t'),
            'n' => bytes.push(b'\n'),
            'v' => bytes.push(11),
            'f' => bytes.push(12),
            'r' => bytes.push(b'\r'),
            '\\' | '\'' | '"' | '?' => bytes.push(escape as u8),
            _ => return None,
        }
        let letter = if matches!(escape, '0'..='7') { 0 } else { escape.len_utf8() };
        rest = &rest[letter + digits.len()..];
    }
    Some(bytes)
}

fn byte(digits: &str, radix: u32) -> Option<u8> {
    let value =
        digits.chars().try_fold(0u32, |value, digit| value.checked_mul(radix)?.checked_add(digit.to_digit(radix)?));
    value.filter(|_| !digits.is_empty())?.try_into().ok()
}

/// The digits at the beginning of a text, up to a count.
fn leading(text: &str, most: usize, radix: u32) -> &str {
    let length = text.chars().take(most).take_while(|c| c.is_digit(radix)).count();
    &text[..length]
}

#[cfg(test)]
mod tests {
    use super::super::text::tokens;
    use super::*;

    #[test]
    fn literals_have_types_and_values() {
        use Type::{Int, Long, Unsigned, UnsignedLong};
        for (literal, of, value) in [
            ("010", Int, 8),
            ("0", Int, 0),
            ("0x1F", Int, 31),
            ("0b101", Int, 5),
            ("-7", Int, -7),
            ("-(7)", Int, -7),
            ("2147483648", Long, 2_147_483_648),
            ("-2147483648", Long, -2_147_483_648),
            ("0xFFFFFFFF", Unsigned, 4_294_967_295),
            ("5u", Unsigned, 5),
            ("-1U", Unsigned, 4_294_967_295),
            ("5LL", Long, 5),
            ("5ul", UnsignedLong, 5),
            ("18446744073709551615", UnsignedLong, u64::MAX.into()),
            ("'\\0'", Int, 0),
            ("'\\n'", Int, 10),
            ("'\\''", Int, 39),
            ("'\\101'", Int, 65),
            ("'\\xff'", Int, -1),
            ("INT_MIN", Int, i32::MIN.into()),
            ("-INT_MAX", Int, (-i32::MAX).into()),
            ("SIZE_MAX", UnsignedLong, u64::MAX.into()),
            ("LLONG_MAX", Long, i64::MAX.into()),
            ("true", Int, 1),
            ("2 - 3 - -4 * (1 + 1)", Int, 7),
            ("7 / 2 * 2 + 7 % 4", Int, 9),
            ("-INT_MAX - 1", Int, i32::MIN.into()),
        ] {
            assert_eq!(number(&tokens(literal).unwrap()), Some(Number::whole(of, value)), "{literal}");
        }
        for (literal, value) in [
            ("0.1f", Number::float(0.1)),
            ("1e3", Number::double(1000.0)),
            (".5L", Number::double(0.5)),
            ("-2.", Number::double(-2.0)),
            ("010.5", Number::double(10.5)),
            ("2.0/3", Number::double(2.0 / 3.0)),
            ("1e9 + 7", Number::double(1_000_000_007.0)),
        ] {
            assert_eq!(number(&tokens(literal).unwrap()), Some(value), "{literal}");
        }
        for literal in [
            "08",
            "1x",
            "5uu",
            "1f",
            "0x",
            "'ab'",
            "''",
            "x",
            "1 + x",
            "1 / 0",
            "1 << 2",
            "99999999999999999999",
            "1e5x",
            "\"a\"",
        ] {
            assert_eq!(number(&tokens(literal).unwrap()), None, "{literal}");
        }
    }

    #[test]
    fn texts_have_escapes() {
        for (literal, value) in [
            (r#""a\012""#, "a\n"),
            (r#""\x41" "b""#, "Ab"),
            (r#""\x00041""#, "A"),
            (r#""\1013""#, "A3"),
            (r#"("\a\b\t\v\f\r\\\"\'\?")"#, "\u{7}\u{8}\t\u{b}\u{c}\r\\\"'?"),
            (r#""a\0b""#, "a"),
            (r#""é\u00e9\303\251""#, "ééé"),
            (r#""""#, ""),
        ] {
            assert_eq!(text(&tokens(literal).unwrap()).as_deref(), Some(value), "{literal}");
        }
        for literal in [r#""\xff""#, r#""\q""#, r#""\x""#, r#""\u12""#, r#""\x141""#, "a", r#"L"a""#, r#""a" + 1"#] {
            assert_eq!(text(&tokens(literal).unwrap()), None, "{literal}");
        }
    }
}
