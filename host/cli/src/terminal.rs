//! The only way to stdout and stderr. Almost every message contains text of a plugin, a model or a row. So everything
//! that is printed is escaped here, and a lint refuses other ways to print.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::disallowed_methods, reason = "the way to them")]

use anyhow::{Context, Result};
use gavel_data::shown::{Shown, ShownLines, is_seen};
use serde::Serialize;
use std::fmt::{self, Display, Formatter, Write as _};
use std::io::{IsTerminal, Write as _};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::MakeExt;
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::fmt::format::debug_fn;
use tracing_subscriber::util::SubscriberInitExt;

/// Prints a line to stdout: a line break in it is escaped.
#[doc(hidden)]
#[macro_export]
macro_rules! outln {
    () => { $crate::terminal::out(format_args!("")) };
    ($($text:tt)*) => { $crate::terminal::out(format_args!($($text)*)) };
}

/// Prints a line to stderr: a line break in it is escaped.
#[doc(hidden)]
#[macro_export]
macro_rules! errln {
    ($($text:tt)*) => { $crate::terminal::err(format_args!($($text)*)) };
}

pub use crate::{errln, outln};

pub fn out(line: fmt::Arguments<'_>) {
    line_to(&mut std::io::stdout(), format_args!("{}", Shown(line)));
}

pub fn err(line: fmt::Arguments<'_>) {
    line_to(&mut std::io::stderr(), format_args!("{}", Shown(line)));
}

/// Prints a text of several lines to stdout, as an error is printed.
pub fn out_lines(text: impl Display) {
    line_to(&mut std::io::stdout(), format_args!("{}", Message(&text.to_string())));
}

/// Prints a text of the host to stderr, with the line breaks that it has.
pub fn err_lines(text: &str) {
    line_to(&mut std::io::stderr(), format_args!("{}", seen_text(text.trim_end())));
}

/// Prints the output of a tool to stderr, indented to tell it from the host's lines.
pub fn err_quoted(text: &str) {
    text.lines().for_each(|line| line_to(&mut std::io::stderr(), format_args!("  {}", ShownLines(line))));
}

/// Prints a text of one or more lines behind its title to stdout, each line
/// below the first.
pub fn out_titled(title: &str, text: &str) {
    for (number, line) in text.lines().enumerate() {
        let line = format!("{:<1$}{2}", if number == 0 { title } else { "" }, title.len(), ShownLines(line));
        line_to(&mut std::io::stdout(), format_args!("{}", line.trim_end()));
    }
}

/// Prints a value as JSON in one line to stdout.
pub fn json(value: &impl Serialize) -> Result<()> {
    write_out(&(seen_json(&serde_json::to_string(value)?) + "\n"))
}

/// Prints lines of JSON to stdout.
pub fn json_lines(lines: &[u8]) -> Result<()> {
    write_out(&seen_json(std::str::from_utf8(lines)?))
}

/// Prints a value as JSON in many lines to stdout.
pub fn json_pretty(value: &impl Serialize) -> Result<()> {
    write_out(&(seen_json(&serde_json::to_string_pretty(value)?) + "\n"))
}

/// Prints what a model wrote, a configuration or a script to stdout. On a terminal, everything but line breaks and tabs
/// is escaped; a file or another program gets the text as it is.
pub fn data(text: &str) -> Result<()> {
    match std::io::stdout().is_terminal() {
        true => write_out(&seen_text(text)),
        false => write_out(text),
    }
}

/// Writes a line. If nobody reads the output any more, the line is lost, and the command continues.
fn line_to(out: &mut impl std::io::Write, line: fmt::Arguments<'_>) {
    let _ = writeln!(out, "{line}");
}

/// Writes to stdout. A closed pipe is an error, not a panic.
fn write_out(text: &str) -> Result<()> {
    let mut out = std::io::stdout();
    out.write_all(text.as_bytes()).and_then(|()| out.flush()).context("cannot write to stdout")
}

/// Escapes each line of a text and keeps its line breaks, also those at its start and end: a text may come in pieces.
fn seen_text(text: &str) -> String {
    text.split('\n').map(|line| ShownLines(line).to_string()).collect::<Vec<_>>().join("\n")
}

/// The same JSON, with escapes for characters that act on a terminal. JSON has such characters only in strings.
fn seen_json(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if c == '\n' || is_seen(c) {
            text.push(c);
        } else {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

/// Prints an error as the user sees it.
pub fn error(error: &str) {
    let (start, end) = if coloured() { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
    line_to(&mut std::io::stderr(), format_args!("{start}error{end}: {}", Message(error)));
}

/// Logs go to stderr, escaped as errors are.
pub fn start_log(level: &str) {
    log(level, coloured(), std::io::stderr).init();
}

fn log(
    level: &str,
    coloured: bool,
    writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) -> impl SubscriberInitExt {
    let fields = debug_fn(|out, field, value| match field.name() {
        "message" => write!(out, "{}", Message(&format!("{value:?}"))),
        name => write!(out, "{name}={}", Shown(format_args!("{value:?}"))),
    });
    tracing_subscriber::fmt()
        // Of all crates: the filter takes the beginnings of their names.
        .with_env_filter(EnvFilter::new(format!("warn,gavel={level}")))
        .with_writer(writer)
        .with_ansi(coloured)
        .with_target(false)
        .without_time()
        .fmt_fields(fields.delimited(" "))
        .finish()
}

/// Whether stderr is a terminal.
pub fn stderr_is_terminal() -> bool {
    std::io::stderr().is_terminal()
}

/// Whether stdout is a terminal.
pub fn stdout_is_terminal() -> bool {
    std::io::stdout().is_terminal()
}

/// Whether stderr gets colours.
fn coloured() -> bool {
    stderr_is_terminal() && allows_colours()
}

/// Whether the user allows colours on a terminal: <https://no-color.org>.
pub fn allows_colours() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// A message. Only its first line and its hints start at the margin. If a line between them is not indented, all lines
/// of that part are indented.
struct Message<'a>(&'a str);

impl Display for Message<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        const HINT: &str = "\nhint: ";
        for (number, part) in self.0.split(HINT).enumerate() {
            if number > 0 {
                f.write_str(HINT)?;
            }
            let indented = part.lines().skip(1).all(|line| line.is_empty() || line.starts_with("  "));
            match indented {
                true => f.write_str(&seen_text(part))?,
                false => write!(f, "{}", ShownLines(part))?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;
    use std::sync::{Arc, Mutex};

    #[test]
    fn only_the_first_line_and_the_hints_of_a_message_stand_at_the_margin() {
        let text = "plugin `x`: \x1b[2Jgone\nerror: forged\r\n  deep\n\nhint: write it\n  as\u{202e} here";
        let shown = "plugin `x`: \\u{1b}[2Jgone\n  error: forged\\r\n    deep\n\nhint: write it\n  as\\u{202e} here";
        assert_eq!(Message(text).to_string(), shown);
        assert_eq!(Message("a\nhint: b\n c\nerror: d").to_string(), "a\nhint: b\n   c\n  error: d");
    }

    #[derive(Clone, Default)]
    struct Log(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_is_logged_is_escaped_and_its_level_is_coloured() {
        let text = "x\x1b]0;t\x07\nerror: forged\u{202e}";
        for (coloured, level) in [(false, " WARN "), (true, "\x1b[33m WARN\x1b[0m ")] {
            let written = Log::default();
            let to = written.clone();
            let guard = log("info", coloured, move || to.clone()).set_default();
            tracing::warn!(of = text, "it says {text}\nhint: no");
            drop(guard);
            let written = String::from_utf8(written.0.lock().unwrap().clone()).unwrap();
            let message = "it says x\\u{1b}]0;t\\u{7}\n  error: forged\\u{202e}\nhint: no";
            let (before, after) = written.split_once(message).unwrap();
            assert_eq!(before, level);
            assert!(
                after.starts_with(" of=\"x\\u{1b}") && after.ends_with("\"\n") && !after.contains('\x1b'),
                "{after}"
            );
        }
    }

    #[test]
    fn the_text_of_a_model_keeps_its_lines() {
        assert_eq!(seen_text("\n  a\tb\n\nerror: c\r\u{1b}[31m 漢\n"), "\n  a\tb\n\nerror: c\\r\\u{1b}[31m 漢\n");
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = Value::from("a\u{1b}\n\u{7f}\u{9b}\u{202e}\u{feff}\u{e0041}\"é🙂\\");
        let json = value.to_string();
        let seen = seen_json(&json);
        assert!(seen.chars().all(is_seen), "{seen}");
        assert_eq!(serde_json::from_str::<Value>(&seen).unwrap(), value);
        assert_eq!(seen, r#""a\u001b\n\u007f\u009b\u202e\ufeff\udb40\udc41\"é🙂\\""#);
    }
}
