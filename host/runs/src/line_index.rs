//! Where the lines of a file begin, by the name that each begins with, so that one line of a file of any length is found
//! at once. Such an index is kept beside a long file, in `index/`, and is only a copy: it is made when it is first needed,
//! and again if it is damaged or does not fit the file. Lines that are added to the file are added to the index.
//!
//! | bytes of an index | |
//! |---|---|
//! | 8 | `GAVELIDX` |
//! | 8 | the version of this format |
//! | 8 | the bytes of the file that are indexed: whole lines |
//! | 8 | the number of these lines |
//! | 8 | the number of entries |
//! | 16 | a hash of these bytes' number, their start and their end |
//! | 16 | the first bytes of the BLAKE3 of all other bytes of the index |
//! | 24 an entry, in the order of the file | the first 8 bytes of the name's BLAKE3; the line's first byte; its number, from 1 |
//! | 4 an entry | the numbers of the entries, in the order of the hashes of their names |
//!
//! All numbers are little-endian. Lines that follow each other with the same name have one entry.

use gavel_data::files::{WholeFile, open_regular, read_line};
use std::fs::{self, File};
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

const MAGIC: [u8; 8] = *b"GAVELIDX";
const VERSION: u64 = 2;
const HEADER: u64 = 72;
/// The part of the header before the hash of the index.
const HEADER_START: usize = 56;
const ENTRY: u64 = 24;
const RANK: u64 = 4;
/// The bytes at the start and at the end of the indexed part that are hashed.
const HASHED: u64 = 4096;
/// The index of a shorter file is not kept: reading the file takes no longer than reading the index.
const KEPT_FROM: u64 = 256 * 1024;

/// The place of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// Its first byte.
    pub(crate) offset: u64,
    /// Its number, from 1.
    pub(crate) line: u64,
}

/// The index of a file.
pub(crate) struct LineIndex {
    bytes: Bytes,
    count: u64,
}

/// The content of an index.
enum Bytes {
    Kept(File),
    Made(Vec<u8>),
}

impl Bytes {
    fn read(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        match self {
            Self::Kept(file) => file.read_exact_at(buffer, offset),
            Self::Made(bytes) => {
                let part = usize::try_from(offset).ok().and_then(|start| bytes.get(start..)?.get(..buffer.len()));
                buffer.copy_from_slice(part.ok_or(io::ErrorKind::UnexpectedEof)?);
                Ok(())
            }
        }
    }
}

impl LineIndex {
    /// The index of the lines that the file `data` has now, kept at `kept` if the file is long. `start` is what each line
    /// begins with before its name, which ends at the next quotation mark, such as `{"id":"`.
    ///
    /// # Errors
    /// The file cannot be read. An index that cannot be read or written is no error.
    pub(crate) fn of(data: &Path, kept: &Path, start: &str) -> io::Result<Self> {
        let mut file = open_regular(data)?;
        let length = file.metadata()?.len();
        let stored = if length < KEPT_FROM { None } else { Stored::open(kept, &file, length) };
        let (mut made, is_kept) = match stored {
            Some(stored) if stored.covered == length => return Ok(stored.index()),
            Some(stored) => (stored, true),
            None => (Stored::none(), false),
        };
        let added = Entries::read(&mut file, length, &made, start)?;
        if added.covered == made.covered && is_kept {
            return Ok(made.index());
        }
        let grown = added.covered - made.covered;
        let whole = added.after(&mut made)?;
        let bytes = whole.to_bytes(fingerprint(&file, whole.covered)?)?;
        if length >= KEPT_FROM && (!is_kept || grown >= KEPT_FROM) {
            // A folder that cannot be written has no index, and a reader makes one whenever it needs it.
            if let Err(error) = keep(kept, &bytes) {
                tracing::debug!("the index {} is not kept: {error}", kept.display());
            }
        }
        Ok(Self { count: whole.entries.len() as u64, bytes: Bytes::Made(bytes) })
    }

    /// The number of entries: lines, of which those with the same name that follow each other count once.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// The line of an entry, counted from 0 in the order of the file.
    pub(crate) fn nth(&self, number: u64) -> io::Result<Option<Place>> {
        if number >= self.count {
            return Ok(None);
        }
        Ok(Some(self.entry(number)?.place))
    }

    /// The lines that may have this name, in the order of the file: all of those that have it, and rarely another.
    pub(crate) fn find(&self, name: &str) -> io::Result<Vec<Place>> {
        let key = key(name.as_bytes());
        let (mut low, mut high) = (0, self.count);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.ranked(middle)?.key < key {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        let mut found = Vec::new();
        while low < self.count {
            let entry = self.ranked(low)?;
            if entry.key != key {
                break;
            }
            found.push(entry.place);
            low += 1;
        }
        found.sort_unstable_by_key(|place| place.offset);
        Ok(found)
    }

    /// The entry with this place in the order of keys.
    fn ranked(&self, rank: u64) -> io::Result<Entry> {
        let mut number = [0; RANK as usize];
        self.bytes.read(&mut number, HEADER + self.count * ENTRY + rank * RANK)?;
        match u64::from(u32::from_le_bytes(number)) {
            number if number < self.count => self.entry(number),
            _ => Err(io::Error::other("its index is damaged")),
        }
    }

    fn entry(&self, number: u64) -> io::Result<Entry> {
        let mut bytes = [0; ENTRY as usize];
        self.bytes.read(&mut bytes, HEADER + number * ENTRY)?;
        Ok(Entry::from(&bytes))
    }
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    key: u64,
    place: Place,
}

impl From<&[u8; ENTRY as usize]> for Entry {
    fn from(bytes: &[u8; ENTRY as usize]) -> Self {
        let (words, _) = bytes.as_chunks::<8>();
        let word = |number: usize| words.get(number).map_or(0, |word| u64::from_le_bytes(*word));
        Self { key: word(0), place: Place { offset: word(1), line: word(2) } }
    }
}

fn key(name: &[u8]) -> u64 {
    let hash = blake3::hash(name);
    let (words, _) = hash.as_bytes().as_chunks::<8>();
    words.first().map_or(0, |word| u64::from_le_bytes(*word))
}

/// An index that was kept and fits the start of its file.
struct Stored {
    file: Option<File>,
    covered: u64,
    lines: u64,
    count: u64,
}

impl Stored {
    fn none() -> Self {
        Self { file: None, covered: 0, lines: 0, count: 0 }
    }

    /// `None` if there is none, if it belongs to another file, or if it is damaged.
    fn open(kept: &Path, data: &File, length: u64) -> Option<Self> {
        let file = open_regular(kept).ok()?;
        let mut header = [0; HEADER as usize];
        file.read_exact_at(&mut header, 0).ok()?;
        let (words, _) = header.as_chunks::<8>();
        let word = |number: usize| words.get(number).map(|word| u64::from_le_bytes(*word));
        let (covered, lines, count) = (word(2)?, word(3)?, word(4)?);
        let is_possible = covered <= length && lines <= covered && count <= lines;
        let is_index = header.starts_with(&MAGIC) && word(1)? == VERSION && is_possible;
        let bytes = count.checked_mul(ENTRY + RANK)?.checked_add(HEADER)?;
        if !is_index || file.metadata().ok()?.len() != bytes {
            return None;
        }
        let is_of_data = fingerprint(data, covered).ok()? == header.get(40..HEADER_START)?;
        let stored = Self { file: Some(file), covered, lines, count };
        (is_of_data && stored.is_whole(&header).ok()?).then_some(stored)
    }

    /// Whether its bytes have the hash in its header, and every number in it is possible.
    fn is_whole(&self, header: &[u8; HEADER as usize]) -> io::Result<bool> {
        let Some(file) = &self.file else { return Ok(true) };
        let mut reader = BufReader::with_capacity(1 << 16, file);
        reader.seek(SeekFrom::Start(HEADER))?;
        let (start, hash) = header.split_at(HEADER_START);
        let mut hasher = blake3::Hasher::new();
        hasher.update(start);
        let mut after = Place { offset: 0, line: 0 };
        for _ in 0..self.count {
            let mut bytes = [0; ENTRY as usize];
            reader.read_exact(&mut bytes)?;
            hasher.update(&bytes);
            let place = Entry::from(&bytes).place;
            let is_in_order = place.offset >= after.offset && place.line > after.line;
            if !is_in_order || place.offset >= self.covered || place.line > self.lines {
                return Ok(false);
            }
            after = Place { offset: place.offset + 1, line: place.line };
        }
        for _ in 0..self.count {
            let mut bytes = [0; RANK as usize];
            reader.read_exact(&mut bytes)?;
            hasher.update(&bytes);
            if u64::from(u32::from_le_bytes(bytes)) >= self.count {
                return Ok(false);
            }
        }
        Ok(hash_of(&hasher) == hash)
    }

    fn index(self) -> LineIndex {
        let bytes = self.file.map_or_else(|| Bytes::Made(Vec::new()), Bytes::Kept);
        LineIndex { bytes, count: self.count }
    }

    /// All of its entries.
    fn entries(&mut self) -> io::Result<Vec<Entry>> {
        let Some(file) = &mut self.file else { return Ok(Vec::new()) };
        file.seek(SeekFrom::Start(HEADER))?;
        let mut bytes = Vec::new();
        file.take(self.count * ENTRY).read_to_end(&mut bytes)?;
        let (entries, _) = bytes.as_chunks();
        Ok(entries.iter().map(Entry::from).collect())
    }
}

/// The entries of a part of a file.
struct Entries {
    entries: Vec<Entry>,
    covered: u64,
    lines: u64,
}

impl Entries {
    /// The entries of the whole lines of `data` between what `before` has and `length`.
    fn read(data: &mut File, length: u64, before: &Stored, start: &str) -> io::Result<Self> {
        let Stored { covered, lines, .. } = *before;
        data.seek(SeekFrom::Start(covered))?;
        let mut file = BufReader::with_capacity(1 << 20, Read::by_ref(data).take(length - covered));
        let mut read = Self { entries: Vec::new(), covered, lines };
        let (mut line, mut last) = (Vec::new(), Vec::new());
        loop {
            let bytes = read_line(&mut file, &mut line)?;
            if !line.ends_with(b"\n") {
                return Ok(read);
            }
            read.lines += 1;
            if let Some(name) = name(&line, start)
                && (last != name || read.entries.is_empty())
            {
                let place = Place { offset: read.covered, line: read.lines };
                read.entries.push(Entry { key: key(name), place });
                last.clear();
                last.extend_from_slice(name);
            }
            read.covered += bytes as u64;
        }
    }

    /// These entries, behind those that were kept.
    fn after(self, stored: &mut Stored) -> io::Result<Self> {
        let mut entries = stored.entries()?;
        entries.extend(self.entries);
        Ok(Self { entries, ..self })
    }

    fn to_bytes(&self, fingerprint: [u8; 16]) -> io::Result<Vec<u8>> {
        let count = u32::try_from(self.entries.len()).map_err(|_| io::Error::other("it has too many lines"))?;
        let mut ranks: Vec<u32> = (0..count).collect();
        let key = |number: &u32| self.entries.get(*number as usize).map_or(0, |entry| entry.key);
        ranks.sort_by_key(key);
        let mut bytes = Vec::with_capacity((HEADER + u64::from(count) * (ENTRY + RANK)) as usize);
        bytes.extend_from_slice(&MAGIC);
        for number in [VERSION, self.covered, self.lines, u64::from(count)] {
            bytes.extend_from_slice(&number.to_le_bytes());
        }
        bytes.extend_from_slice(&fingerprint);
        let mut hasher = blake3::Hasher::new();
        hasher.update(&bytes);
        bytes.extend_from_slice(&[0; HEADER as usize - HEADER_START]);
        for Entry { key, place } in &self.entries {
            for number in [*key, place.offset, place.line] {
                bytes.extend_from_slice(&number.to_le_bytes());
            }
        }
        ranks.iter().for_each(|rank| bytes.extend_from_slice(&rank.to_le_bytes()));
        if let Some((header, body)) = bytes.split_at_mut_checked(HEADER as usize)
            && let Some(hash) = header.get_mut(HEADER_START..)
        {
            hash.copy_from_slice(&hash_of(hasher.update(body)));
        }
        Ok(bytes)
    }
}

/// The name of a line that begins as expected. A line that somebody else wrote, or whose name has an escaped character, has
/// none.
fn name<'a>(line: &'a [u8], start: &str) -> Option<&'a [u8]> {
    let rest = line.strip_prefix(start.as_bytes())?;
    let end = rest.iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    rest.get(..end).filter(|_| rest.get(end) == Some(&b'"'))
}

/// A hash of the start and the end of the first bytes of a file, and of their number.
fn fingerprint(data: &File, covered: u64) -> io::Result<[u8; 16]> {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&covered.to_le_bytes());
    let mut part = vec![0; covered.min(HASHED) as usize];
    for start in [0, covered - covered.min(HASHED)] {
        data.read_exact_at(&mut part, start)?;
        hasher.update(&part);
    }
    Ok(hash_of(&hasher))
}

/// The first bytes of a hash.
fn hash_of(hasher: &blake3::Hasher) -> [u8; 16] {
    let mut hash = [0; 16];
    hasher.finalize_xof().fill(&mut hash);
    hash
}

/// Writes an index, which gets its name when it is whole. Nothing is written through a link: the folder of a run may come
/// from strangers.
fn keep(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().ok_or(io::ErrorKind::InvalidInput)?;
    let above = folder.parent().ok_or(io::ErrorKind::InvalidInput)?;
    for folder in [above, folder] {
        if fs::symlink_metadata(folder).is_ok_and(|found| !found.is_dir()) {
            return Err(io::Error::other("it is in a folder that is a link or no folder"));
        }
        // The folder above them is not made: the run may just have been removed.
        if let Err(error) = fs::create_dir(folder)
            && error.kind() != io::ErrorKind::AlreadyExists
        {
            return Err(error);
        }
    }
    // Several threads and processes may make the same index.
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    let mut partial = path.as_os_str().to_owned();
    partial.push(format!(".{}-{number}.partial", std::process::id()));
    let mut out = BufWriter::new(WholeFile::create_as(path, partial.into())?);
    out.write_all(bytes)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.finish()
}

#[cfg(test)]
mod tests;
