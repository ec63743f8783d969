//! The tokens that could be drawn at each position of a response.
//!
//! A position whose distribution was not cut takes no memory. A position that was takes [`CUT_BYTES`] bytes and a list of
//! ids: the tokens that could be drawn or the others, whichever are fewer. The list is kept in the shorter of two forms,
//! gaps between ids or a bit for each id. With a vocabulary of `v` tokens it takes at most `v / 8` bytes, and one or two
//! for each id where few tokens are left.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;

/// What a position that is cut takes beside its list of ids, at most: where the list is, its form and its length.
pub const CUT_BYTES: usize = size_of::<Cut>() + 1 + LONGEST_NUMBER;

/// The most bytes of a number.
const LONGEST_NUMBER: usize = 10;

/// The tokens that could be drawn at one position. The ids are in ascending order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum SamplingMask {
    /// All of them.
    #[default]
    All,
    /// These; at least one.
    Only(Vec<u32>),
    /// All but these.
    Except(Vec<u32>),
}

impl SamplingMask {
    /// The mask of the tokens `kept`, in ascending order, of a vocabulary: with the shorter list.
    pub fn of(kept: &[u32], vocabulary: usize) -> Self {
        if kept.len() >= vocabulary {
            return Self::All;
        }
        if 2 * kept.len() <= vocabulary {
            return Self::Only(kept.to_vec());
        }
        let mut kept = kept.iter().copied().peekable();
        let is_cut = |id: &u32| kept.next_if_eq(id).is_none();
        Self::Except((0..vocabulary as u32).filter(is_cut).collect())
    }

    /// Whether a token could be drawn.
    pub fn contains(&self, token: u32) -> bool {
        match self {
            Self::All => true,
            Self::Only(ids) => ids.binary_search(&token).is_ok(),
            Self::Except(ids) => ids.binary_search(&token).is_err(),
        }
    }
}

/// The tokens that could be drawn at each position of a response, compressed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SamplingMasks {
    len: usize,
    /// The positions that are cut, in ascending order.
    cuts: Vec<Cut>,
    /// Their masks, one after another.
    masks: Vec<u8>,
}

/// A position that is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    position: usize,
    /// Where its mask begins.
    start: usize,
}

impl SamplingMasks {
    /// Masks of no position.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the mask of the next position.
    pub fn push(&mut self, mask: &SamplingMask) {
        let form = match mask {
            SamplingMask::All => None,
            SamplingMask::Except(ids) if ids.is_empty() => None,
            SamplingMask::Only(ids) => Some((ids, Form::ONLY)),
            SamplingMask::Except(ids) => Some((ids, Form::EXCEPT)),
        };
        if let Some((ids, form)) = form {
            self.cuts.push(Cut { position: self.len, start: self.masks.len() });
            write_ids(&mut self.masks, &ascending(ids), form);
        }
        self.len += 1;
    }

    /// The number of positions.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Whether a position is cut.
    pub fn cuts(&self) -> bool {
        !self.cuts.is_empty()
    }

    /// The mask of a position; `All` past the end.
    pub fn get(&self, position: usize) -> SamplingMask {
        let Ok(number) = self.cuts.binary_search_by_key(&position, |cut| cut.position) else {
            return SamplingMask::All;
        };
        // What is kept was written by `push`, or checked when it was read.
        Reader(&self.masks[self.cuts[number].start..]).mask().unwrap_or_default()
    }

    /// Keeps the first `len` positions.
    pub fn truncate(&mut self, len: usize) {
        let kept = self.cuts.partition_point(|cut| cut.position < len);
        if let Some(first) = self.cuts.get(kept) {
            self.masks.truncate(first.start);
            self.cuts.truncate(kept);
        }
        self.len = self.len.min(len);
    }

    /// Adds positions that are not cut, until there are `len`.
    pub fn pad(&mut self, len: usize) {
        self.len = self.len.max(len);
    }

    /// Adds the positions of `other`.
    pub fn append(&mut self, other: &Self) {
        let (position, start) = (self.len, self.masks.len());
        let moved = other.cuts.iter().map(|cut| Cut { position: position + cut.position, start: start + cut.start });
        self.cuts.extend(moved);
        self.masks.extend_from_slice(&other.masks);
        self.len += other.len;
    }

    /// The memory that they take, in bytes.
    pub fn bytes(&self) -> usize {
        size_of::<Self>() + self.cuts.capacity() * size_of::<Cut>() + self.masks.capacity()
    }

    /// As text: base64 of the number of positions, and of the distance and the mask of each that is cut.
    pub fn to_text(&self) -> String {
        let mut bytes = Vec::with_capacity(LONGEST_NUMBER + 2 * self.cuts.len() + self.masks.len());
        write_number(&mut bytes, self.len as u64);
        let ends = self.cuts.iter().skip(1).map(|cut| cut.start).chain([self.masks.len()]);
        let mut next = 0;
        for (cut, end) in self.cuts.iter().zip(ends) {
            write_number(&mut bytes, (cut.position - next) as u64);
            bytes.extend_from_slice(&self.masks[cut.start..end]);
            next = cut.position + 1;
        }
        STANDARD.encode(bytes)
    }

    /// Masks from their [text](Self::to_text).
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let bytes =
            STANDARD.decode(text).map_err(|error| format!("the base64 of sampling masks is broken: {error}"))?;
        let mut reader = Reader(&bytes);
        let len = reader.length().map_err(|what| format!("the number of sampling masks {what}"))?;
        let mut found = Self { len, ..Self::default() };
        let mut next = 0;
        while !reader.0.is_empty() {
            let number = found.cuts.len();
            let damaged = |what| format!("sampling mask {number} {what}");
            let position = reader.length().map_err(damaged)?.checked_add(next);
            let Some(position) = position.filter(|position| *position < len) else {
                return Err(format!("sampling mask {number} is for no position of {len}"));
            };
            let before = reader.0;
            reader.mask().map_err(damaged)?;
            found.cuts.push(Cut { position, start: found.masks.len() });
            found.masks.extend_from_slice(&before[..before.len() - reader.0.len()]);
            next = position + 1;
        }
        Ok(found)
    }
}

impl Serialize for SamplingMasks {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_text())
    }
}

impl<'de> Deserialize<'de> for SamplingMasks {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = Cow::<str>::deserialize(deserializer)?;
        Self::from_text(&text).map_err(D::Error::custom)
    }
}

/// How a list of ids is kept: the first byte of a mask.
struct Form;

impl Form {
    const ONLY: u8 = 0;
    const EXCEPT: u8 = 1;
    /// Added where each id has a bit.
    const BITS: u8 = 2;
}

/// Ids in ascending order, each once.
fn ascending(ids: &[u32]) -> Cow<'_, [u32]> {
    if ids.is_sorted_by(|one, other| one < other) {
        return Cow::Borrowed(ids);
    }
    let mut sorted = ids.to_vec();
    sorted.sort_unstable();
    sorted.dedup();
    Cow::Owned(sorted)
}

/// Writes the form, the length and the ids: the first id and the gaps between them, or a bit for each up to the last.
fn write_ids(to: &mut Vec<u8>, ids: &[u32], form: u8) {
    let start = to.len();
    to.push(form);
    write_number(to, ids.len() as u64);
    let list = to.len();
    let mut next = 0;
    for &id in ids {
        write_number(to, u64::from(id) - next);
        next = u64::from(id) + 1;
    }
    let Some(bits) = ids.last().map(|last| *last as usize / 8 + 1) else { return };
    if bits < to.len() - list {
        to.truncate(start);
        to.push(form + Form::BITS);
        write_number(to, bits as u64);
        let first = to.len();
        to.resize(first + bits, 0);
        ids.iter().for_each(|&id| to[first + id as usize / 8] |= 1 << (id % 8));
    }
}

/// Writes a number in as few bytes as it needs: seven bits each, the lowest first.
fn write_number(to: &mut Vec<u8>, mut number: u64) {
    while number > 0x7f {
        to.push(number as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

/// The bytes that are not read yet.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> Result<u8, &'static str> {
        let (first, rest) = self.0.split_first().ok_or("ends too early")?;
        self.0 = rest;
        Ok(*first)
    }

    fn number(&mut self) -> Result<u64, &'static str> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let part = u64::from(byte & 0x7f);
            if part << shift >> shift != part {
                break;
            }
            number |= part << shift;
            if byte & 0x80 == 0 {
                return Ok(number);
            }
        }
        Err("has a number of more than 64 bits")
    }

    fn length(&mut self) -> Result<usize, &'static str> {
        self.number()?.try_into().map_err(|_| "has a number that is too large")
    }

    /// The mask that begins here.
    fn mask(&mut self) -> Result<SamplingMask, &'static str> {
        let form = self.byte()?;
        let length = self.length()?;
        if length == 0 {
            return Err("has no token ids");
        }
        // An id takes a byte or a bit: what is allocated for them is not more than the text has.
        if length > self.0.len() {
            return Err("ends too early");
        }
        let ids = match form & Form::BITS {
            0 => self.gaps(length)?,
            _ => self.bits(length)?,
        };
        match form & !Form::BITS {
            Form::ONLY => Ok(SamplingMask::Only(ids)),
            Form::EXCEPT => Ok(SamplingMask::Except(ids)),
            _ => Err("has an unknown form"),
        }
    }

    fn gaps(&mut self, count: usize) -> Result<Vec<u32>, &'static str> {
        let mut ids = Vec::with_capacity(count);
        let mut next = 0u64;
        for _ in 0..count {
            let id = self.number()?.checked_add(next).and_then(|id| u32::try_from(id).ok());
            let id = id.ok_or("has a token id of more than 32 bits")?;
            next = u64::from(id) + 1;
            ids.push(id);
        }
        Ok(ids)
    }

    fn bits(&mut self, bytes: usize) -> Result<Vec<u32>, &'static str> {
        let (bits, rest) = self.0.split_at(bytes);
        self.0 = rest;
        if bits.last() == Some(&0) || bits.len() > (u32::MAX / 8) as usize + 1 {
            return Err("has bits beyond its token ids");
        }
        let ids = (0u32..)
            .zip(bits)
            .flat_map(|(number, byte)| (0..8).filter(move |bit| byte >> bit & 1 == 1).map(move |bit| 8 * number + bit));
        Ok(ids.collect())
    }
}

#[cfg(test)]
mod tests;
