//! stdin, stdout and stderr. There are no files.

use super::functions;
use super::heap::{allocate, written};
use super::memory::{Guest, State, narrow};
use std::io::{Read, Write};
use wasmi::{Caller, Error, Linker};

/// Bytes that are printed at once.
const BUFFER: usize = 1 << 16;
const EOF: i32 = -1;
const ENOENT: i32 = 2;

/// What is left of stdin.
#[derive(Default)]
pub struct Input {
    bytes: Vec<u8>,
    at: usize,
}

impl Input {
    pub fn rest(&self) -> &[u8] {
        &self.bytes[self.at.min(self.bytes.len())..]
    }
}

/// The three streams.
#[derive(Default)]
pub struct Streams {
    input: Option<Input>,
    at_end: bool,
    out: Vec<u8>,
    /// Whether stdout goes to stderr, as it is no answer.
    aside: bool,
}

impl Streams {
    pub fn new(aside: bool) -> Self {
        Self { aside, ..Self::default() }
    }

    fn input(&mut self) -> &mut Input {
        self.input.get_or_insert_with(|| {
            let mut bytes = Vec::new();
            // What cannot be read is as if it were not there.
            _ = std::io::stdin().read_to_end(&mut bytes);
            Input { bytes, at: 0 }
        })
    }

    pub fn take_input(&mut self) -> Input {
        std::mem::take(self.input())
    }

    pub fn give_back(&mut self, mut input: Input, used: usize) {
        input.at += used;
        self.at_end |= input.rest().is_empty();
        self.input = Some(input);
    }

    fn next(&mut self) -> Option<u8> {
        let input = self.input();
        let byte = input.rest().first().copied();
        input.at += usize::from(byte.is_some());
        self.at_end |= byte.is_none();
        byte
    }

    /// Takes bytes up to a line's end, which is the last one then.
    fn line(&mut self, most: usize) -> Vec<u8> {
        let input = self.input();
        let rest = input.rest();
        let rest = &rest[..rest.len().min(most)];
        let length = rest.iter().position(|byte| *byte == b'\n').map_or(rest.len(), |end| end + 1);
        let line = rest[..length].to_vec();
        input.at += length;
        self.at_end |= line.len() < most && line.last() != Some(&b'\n');
        line
    }

    /// Prints to stdout (2) or stderr (3). Returns whether there is such a file.
    pub fn write(&mut self, file: u32, bytes: &[u8]) -> bool {
        match file {
            2 => {
                self.out.extend(bytes);
                if self.out.len() >= BUFFER {
                    self.flush();
                }
                true
            }
            3 => {
                // An output that cannot be written has ended the child.
                _ = std::io::stderr().write_all(bytes);
                true
            }
            _ => false,
        }
    }

    pub fn flush(&mut self) {
        let out = std::mem::take(&mut self.out);
        if self.aside {
            _ = std::io::stderr().write_all(&out);
        } else {
            let mut stdout = std::io::stdout();
            _ = stdout.write_all(&out).and_then(|()| stdout.flush());
        }
    }
}

fn put_char(guest: &mut Guest, c: i32, file: u32) -> i32 {
    if guest.state.streams.write(file, &[c as u8]) { c & 0xff } else { EOF }
}

fn get_char(guest: &mut Guest, file: u32) -> i32 {
    if file == 1 { guest.state.streams.next().map_or(EOF, i32::from) } else { EOF }
}

pub fn link(linker: &mut Linker<State>) -> Result<(), Error> {
    functions! { linker,
        "putchar" => |guest, c: i32| -> i32 { Ok(put_char(&mut guest, c, 2)) }
        "putc" => |guest, c: i32, file: u32| -> i32 { Ok(put_char(&mut guest, c, file)) }
        "fputc" => |guest, c: i32, file: u32| -> i32 { Ok(put_char(&mut guest, c, file)) }
        "puts" => |guest, text: u32| -> i32 {
            let mut line = guest.text(text)?.to_vec();
            line.push(b'\n');
            guest.state.streams.write(2, &line);
            Ok(1)
        }
        "fputs" => |guest, text: u32, file: u32| -> i32 {
            let text = guest.text(text)?.to_vec();
            Ok(if guest.state.streams.write(file, &text) { 1 } else { EOF })
        }
        "fwrite" => |guest, from: u32, size: u64, count: u64, file: u32| -> u64 {
            let bytes = guest.range(from, narrow(size.saturating_mul(count)))?.to_vec();
            Ok(if guest.state.streams.write(file, &bytes) { count } else { 0 })
        }
        "write" => |guest, descriptor: u32, from: u32, size: u64| -> i64 {
            let bytes = guest.range(from, narrow(size))?.to_vec();
            Ok(if guest.state.streams.write(descriptor.saturating_add(1), &bytes) { size as i64 } else { -1 })
        }
        "getchar" => |guest| -> i32 { Ok(get_char(&mut guest, 1)) }
        "getc" => |guest, file: u32| -> i32 { Ok(get_char(&mut guest, file)) }
        "fgetc" => |guest, file: u32| -> i32 { Ok(get_char(&mut guest, file)) }
        "ungetc" => |guest, c: i32, file: u32| -> i32 {
            let input = guest.state.streams.input();
            if c == EOF || file != 1 || input.at == 0 {
                return Ok(EOF);
            }
            input.at -= 1;
            let at = input.at;
            if let Some(byte) = input.bytes.get_mut(at) {
                *byte = c as u8;
            }
            guest.state.streams.at_end = false;
            Ok(c)
        }
        "fgets" => |guest, to: u32, size: i32, file: u32| -> u32 {
            let Some(most) = usize::try_from(size).ok().and_then(|size| size.checked_sub(1)) else { return Ok(0) };
            let line = if file == 1 { guest.state.streams.line(most) } else { Vec::new() };
            if line.is_empty() && most > 0 {
                return Ok(0);
            }
            guest.put_text(to, &line)?;
            Ok(to)
        }
        "fread" => |guest, to: u32, size: u64, count: u64, file: u32| -> u64 {
            let wanted = narrow(size.saturating_mul(count));
            if file != 1 || wanted == 0 {
                return Ok(0);
            }
            Ok(u64::from(read(&mut guest, to, wanted)?) / size)
        }
        "read" => |guest, descriptor: u32, to: u32, size: u64| -> i64 {
            if descriptor != 0 {
                return Ok(-1);
            }
            read(&mut guest, to, narrow(size)).map(i64::from)
        }
        "fflush" => |guest, _file: u32| -> i32 { guest.state.streams.flush(); Ok(0) }
        "fclose" => |guest, _file: u32| -> i32 { Ok(0) }
        "fopen" => |guest, path: u32, _mode: u32| -> u32 {
            let file = match guest.text(path)? {
                b"/dev/stdin" => 1,
                b"/dev/stdout" => 2,
                b"/dev/stderr" => 3,
                _ => 0,
            };
            if file == 0 {
                guest.set_errno(ENOENT);
            }
            Ok(file)
        }
        "remove" => |guest, _path: u32| -> i32 { guest.set_errno(ENOENT); Ok(-1) }
        "feof" => |guest, file: u32| -> i32 { Ok(i32::from(file == 1 && guest.state.streams.at_end)) }
        "ferror" => |guest, _file: u32| -> i32 { Ok(0) }
        "clearerr" => |guest, _file: u32| -> () { guest.state.streams.at_end = false; Ok(()) }
        "fileno" => |guest, file: u32| -> i32 { Ok(file as i32 - 1) }
        "setbuf" => |guest, _file: u32, _buffer: u32| -> () { Ok(()) }
        "setvbuf" => |guest, _file: u32, _buffer: u32, _mode: i32, _size: u64| -> i32 { Ok(0) }
        "perror" => |guest, text: u32| -> () {
            let mut line = if text == 0 { Vec::new() } else { guest.text(text)?.to_vec() };
            line.extend(b": error\n");
            guest.state.streams.write(3, &line);
            Ok(())
        }
    }
    linker.func_wrap("env", "getline", |mut caller: Caller<State>, line: u32, size: u32, file: u32| {
        let guest = Guest::of(&mut caller)?;
        let text = if file == 1 { guest.state.streams.line(usize::MAX) } else { Vec::new() };
        if text.is_empty() {
            return Ok(-1);
        }
        let needed = text.len() as u32 + 1;
        let (at, has) = (guest.word(line)?, narrow(guest.long(size)?));
        let at = if at == 0 {
            written(&mut caller, &text)?
        } else if has < needed {
            // The old block stays until the end.
            allocate(&mut caller, needed)?
        } else {
            at
        };
        let mut guest = Guest::of(&mut caller)?;
        guest.put_text(at, &text)?;
        guest.put(line, &at.to_le_bytes())?;
        guest.put(size, &u64::from(has.max(needed)).to_le_bytes())?;
        Ok::<i64, Error>(text.len() as i64)
    })?;
    Ok(())
}

fn read(guest: &mut Guest, to: u32, wanted: u32) -> Result<u32, Error> {
    let input = guest.state.streams.take_input();
    let got = input.rest().len().min(wanted as usize);
    let result = guest.put(to, &input.rest()[..got]);
    guest.state.streams.give_back(input, got);
    guest.state.streams.at_end = got < wanted as usize;
    result.map(|()| got as u32)
}
