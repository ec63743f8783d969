//! A program's memory, and what its library knows of it.

use super::{Heap, Streams};
use wasmi::{Caller, Error, Memory};

/// What the library knows of a program.
pub struct State {
    pub memory: Option<Memory>,
    pub heap: Heap,
    pub streams: Streams,
    /// The functions that `atexit` names.
    pub at_exit: Vec<u32>,
    /// Where `strtok` goes on.
    pub token: u32,
    pub random: u64,
    /// The address of `errno`, once it was asked for.
    pub errno: Option<u32>,
    /// What a test's code answers, a line each.
    pub answers: Vec<String>,
}

impl State {
    pub fn new(streams: Streams) -> Self {
        Self {
            memory: None,
            heap: Heap::default(),
            streams,
            at_exit: Vec::new(),
            token: 0,
            random: 1,
            errno: None,
            answers: Vec::new(),
        }
    }
}

/// A program's memory and state during a call of the library.
pub struct Guest<'a> {
    pub memory: &'a mut [u8],
    pub state: &'a mut State,
}

/// A `size_t` of the program. No memory is larger than what it becomes.
pub fn narrow(size: u64) -> u32 {
    u32::try_from(size).unwrap_or(u32::MAX)
}

pub fn outside() -> Error {
    Error::new("Segmentation fault")
}

impl<'a> Guest<'a> {
    pub fn of(caller: &'a mut Caller<State>) -> Result<Self, Error> {
        let memory = caller.data().memory.ok_or_else(outside)?;
        let (memory, state) = memory.data_and_store_mut(caller);
        Ok(Self { memory, state })
    }

    pub fn range(&self, at: u32, size: u32) -> Result<&[u8], Error> {
        let at = at as usize;
        self.memory.get(at..at.saturating_add(size as usize)).filter(|_| at != 0 || size == 0).ok_or_else(outside)
    }

    pub fn range_mut(&mut self, at: u32, size: u32) -> Result<&mut [u8], Error> {
        let at = at as usize;
        self.memory.get_mut(at..at.saturating_add(size as usize)).filter(|_| at != 0 || size == 0).ok_or_else(outside)
    }

    /// The bytes of a text before its zero.
    pub fn text(&self, at: u32) -> Result<&[u8], Error> {
        let rest = self.memory.get(at as usize..).filter(|_| at != 0).ok_or_else(outside)?;
        let end = rest.iter().position(|byte| *byte == 0).ok_or_else(outside)?;
        Ok(&rest[..end])
    }

    /// The bytes of a text before its zero, but not more than `most`.
    pub fn text_within(&self, at: u32, most: u32) -> Result<&[u8], Error> {
        let rest = self.memory.get(at as usize..).filter(|_| at != 0 || most == 0).ok_or_else(outside)?;
        let rest = &rest[..rest.len().min(most as usize)];
        let end = rest.iter().position(|byte| *byte == 0).unwrap_or(rest.len());
        Ok(&rest[..end])
    }

    pub fn put(&mut self, at: u32, bytes: &[u8]) -> Result<(), Error> {
        let size = u32::try_from(bytes.len()).map_err(|_| outside())?;
        self.range_mut(at, size)?.copy_from_slice(bytes);
        Ok(())
    }

    /// Writes a text with its zero.
    pub fn put_text(&mut self, at: u32, text: &[u8]) -> Result<(), Error> {
        self.put(at, text)?;
        self.put(at.wrapping_add(text.len() as u32), &[0])
    }

    pub fn word(&self, at: u32) -> Result<u32, Error> {
        let bytes = self.range(at, 4)?;
        Ok(bytes.try_into().map(u32::from_le_bytes).unwrap_or_default())
    }

    pub fn long(&self, at: u32) -> Result<u64, Error> {
        let bytes = self.range(at, 8)?;
        Ok(bytes.try_into().map(u64::from_le_bytes).unwrap_or_default())
    }

    pub fn set_errno(&mut self, number: i32) {
        if let Some(at) = self.state.errno {
            // It lies in a block of the heap.
            _ = self.put(at, &number.to_le_bytes());
        }
    }
}

/// The variable arguments of a call. An integer and a double have 8 bytes each, a pointer 4.
pub struct Arguments {
    at: u32,
}

impl Arguments {
    pub fn new(at: u32) -> Self {
        Self { at }
    }

    pub fn long(&mut self, guest: &Guest) -> Result<u64, Error> {
        let at = self.at.checked_add(7).ok_or_else(outside)? & !7;
        self.at = at.wrapping_add(8);
        guest.long(at)
    }

    pub fn pointer(&mut self, guest: &Guest) -> Result<u32, Error> {
        let at = self.at.checked_add(3).ok_or_else(outside)? & !3;
        self.at = at.wrapping_add(4);
        guest.word(at)
    }

    pub fn double(&mut self, guest: &Guest) -> Result<f64, Error> {
        self.long(guest).map(f64::from_bits)
    }
}
