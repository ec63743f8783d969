//! Literals of Python.

use super::parsed::Broken;
use super::steps::read;
use gavel_data::{Columns, Json};
use serde_json::{Number, Value};

/// The most levels of lists and objects in an argument.
const LEVELS: usize = 100;

fn in_name(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// The list, object, or word of Python that `text` is.
pub(super) fn literal(text: &str) -> Option<Json> {
    if !text.starts_with(['[', '{']) && !["True", "False", "None"].contains(&text) {
        return None;
    }
    // A value does not end with the text.
    let text = format!("{text},");
    let mut reader = Reader::new(&text);
    let value = reader.value().ok()?;
    (reader.rest == ",").then_some(value)
}

pub(super) struct Reader<'t> {
    text: &'t str,
    /// What was not read yet.
    pub rest: &'t str,
}

impl<'t> Reader<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self { text, rest: text }
    }

    /// Reads a mark after white space, if it is next.
    pub(super) fn next(&mut self, mark: &str) -> bool {
        self.space();
        let next = self.rest.strip_prefix(mark);
        self.rest = next.unwrap_or(self.rest);
        next.is_some()
    }

    pub(super) fn take(&mut self, mark: &str, why: &str) -> Result<(), Broken> {
        if self.next(mark) { Ok(()) } else { Err(self.broken(why)) }
    }

    /// The name of an argument.
    pub(super) fn name(&mut self) -> Result<&'t str, Broken> {
        self.name_of(in_name)
    }

    /// The name of a function, which may have dots and dashes.
    pub(super) fn function(&mut self) -> Result<&'t str, Broken> {
        self.name_of(|char| in_name(char) || matches!(char, '.' | '-'))
    }

    fn name_of(&mut self, is_in: impl Fn(char) -> bool) -> Result<&'t str, Broken> {
        self.space();
        match self.rest.starts_with(|char: char| char.is_alphabetic() || char == '_') {
            true => Ok(self.while_in(is_in)),
            false => Err(self.broken("a name is missing")),
        }
    }

    /// Reads what stands between two values, or leaves the mark that closes them.
    pub(super) fn separator(&mut self, close: &str) -> Result<(), Broken> {
        self.space();
        if self.rest.starts_with(close) || self.next(",") {
            return Ok(());
        }
        Err(self.broken(format!("something other than `,` or `{close}` follows a value")))
    }

    pub(super) fn value(&mut self) -> Result<Json, Broken> {
        self.value_within(LEVELS)
    }

    fn value_within(&mut self, levels: usize) -> Result<Json, Broken> {
        self.space();
        if self.rest.starts_with(['"', '\'']) {
            let mut text = String::new();
            // Texts beside each other are one.
            while self.rest.starts_with(['"', '\'']) {
                self.string(&mut text)?;
                self.space();
            }
            return Ok(Json::from(text.as_str()));
        }
        if self.rest.starts_with(['[', '(', '{']) {
            let levels = levels.checked_sub(1).ok_or_else(|| self.broken("its arguments have too many levels"))?;
            return match () {
                () if self.next("{") => self.object(levels),
                () if self.next("[") => self.items("]", levels),
                () => {
                    self.next("(");
                    self.items(")", levels)
                }
            };
        }
        let word = self.while_in(|char| in_name(char) || matches!(char, '.' | '+' | '-'));
        match (word, self.rest.is_empty()) {
            (_, true) => Err(self.broken("it ends within a value")),
            ("True" | "true", _) => Ok(Json::from(Value::Bool(true))),
            ("False" | "false", _) => Ok(Json::from(Value::Bool(false))),
            ("None" | "null", _) => Ok(Json::default()),
            _ => number(word).ok_or_else(|| self.broken(format!("`{word}` is not a value"))),
        }
    }

    fn items(&mut self, close: &str, levels: usize) -> Result<Json, Broken> {
        let mut items = Vec::new();
        while !self.next(close) {
            items.push(self.value_within(levels)?);
            self.separator(close)?;
        }
        Ok(Json::of(&items).unwrap_or_default())
    }

    fn object(&mut self, levels: usize) -> Result<Json, Broken> {
        let mut fields = Columns::default();
        while !self.next("}") {
            let key = self.value_within(0)?;
            self.take(":", "`:` does not follow a key")?;
            fields.insert(key.plain_text(), self.value_within(levels)?);
            self.separator("}")?;
        }
        Ok(fields.into())
    }

    /// A text between quotes of one or three, without a letter before it.
    fn string(&mut self, out: &mut String) -> Result<(), Broken> {
        let quotes = ["\"\"\"", "'''", "\"", "'"];
        let Some(quote) = quotes.into_iter().find(|quote| self.rest.starts_with(quote)) else { return Ok(()) };
        let cut_off = |reader: &Self| Broken::before(reader.text, "", &[""], "a text has no end");
        self.rest = &self.rest[quote.len()..];
        loop {
            let mark = |char: char| char == '\\' || char == '\n' || quote.starts_with(char);
            let at = self.rest.find(mark).ok_or_else(|| cut_off(self))?;
            read(at + 1);
            out.push_str(&self.rest[..at]);
            self.rest = &self.rest[at..];
            if let Some(rest) = self.rest.strip_prefix(quote) {
                self.rest = rest;
                return Ok(());
            }
            match self.rest.strip_prefix('\\') {
                Some("") => return Err(cut_off(self)),
                Some(_) => self.escape(out)?,
                None if self.rest.starts_with('\n') && quote.len() == 1 => {
                    return Err(self.broken("a line ends within a text"));
                }
                // One or two quotes of three, or the end of a line.
                None => {
                    out.push_str(&self.rest[..1]);
                    self.rest = &self.rest[1..];
                }
            }
        }
    }

    /// Reads what a backslash begins.
    fn escape(&mut self, out: &mut String) -> Result<(), Broken> {
        let code = self.rest[1..].chars().next().unwrap_or('\\');
        let digits = match code {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            '0'..='7' => {
                let digits = &self.rest[1..];
                let length = digits.bytes().take(3).take_while(|digit| matches!(digit, b'0'..=b'7')).count();
                return self.character(out, &digits[..length], 8, 1 + length);
            }
            'N' => return Err(self.broken("`\\N` is not read")),
            _ => {
                let plain = match code {
                    'n' => "\n",
                    't' => "\t",
                    'r' => "\r",
                    'a' => "\u{7}",
                    'b' => "\u{8}",
                    'f' => "\u{c}",
                    'v' => "\u{b}",
                    '\\' => "\\",
                    '\'' => "'",
                    '"' => "\"",
                    '\n' => "",
                    // Python keeps what it does not know.
                    _ => &self.rest[..1 + code.len_utf8()],
                };
                out.push_str(plain);
                self.rest = &self.rest[1 + code.len_utf8()..];
                return Ok(());
            }
        };
        let length = (2 + digits).min(self.rest.len());
        match self.rest.get(2..length) {
            Some(number) if number.len() == digits => self.character(out, number, 16, 2 + digits),
            _ if length == self.rest.len() => Err(Broken::before(self.text, "", &[""], "a text has no end")),
            _ => Err(self.broken("an escape has too few digits")),
        }
    }

    /// Adds the character of a number; the escape has `length` bytes.
    fn character(&mut self, out: &mut String, number: &str, base: u32, length: usize) -> Result<(), Broken> {
        let code = u32::from_str_radix(number, base).ok().and_then(char::from_u32);
        out.push(code.ok_or_else(|| self.broken(format!("`{}` is not a character", &self.rest[..length])))?);
        self.rest = &self.rest[length..];
        Ok(())
    }

    fn space(&mut self) {
        self.rest = self.rest.trim_start();
    }

    fn while_in(&mut self, is_in: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|char| !is_in(char)).unwrap_or(self.rest.len());
        read(end);
        let (text, rest) = self.rest.split_at(end);
        self.rest = rest;
        text
    }

    fn broken(&self, why: impl Into<String>) -> Broken {
        Broken { is_cut_off: self.rest.is_empty(), ..Broken::at(self.text, self.rest, why) }
    }
}

/// A number of Python as JSON.
fn number(word: &str) -> Option<Json> {
    let plain = word.replace('_', "");
    let plain = plain.strip_prefix('+').unwrap_or(&plain);
    if let Ok(number) = serde_json::from_str::<Number>(plain) {
        return Json::of(&number).ok();
    }
    let has_digits = plain.trim_start_matches('-').starts_with(|char: char| char.is_ascii_digit() || char == '.');
    let float = plain.parse::<f64>().ok().filter(|_| has_digits && !plain.starts_with("00"))?;
    Number::from_f64(float).and_then(|number| Json::of(&number).ok())
}
