//! What the compiler sees of WASI: its arguments, and files in memory.

use std::collections::HashMap;
use wasmi::{Caller, Error, Linker, Memory};

/// Error numbers of WASI.
const DONE: i32 = 0;
const BADF: i32 = 8;
const INVAL: i32 = 28;
const NOENT: i32 = 44;
const NOSYS: i32 = 52;

/// The first descriptor of a file; the one before it is the folder of all files.
const FOLDER: u32 = 3;
const DIRECTORY: u8 = 3;
const REGULAR: u8 = 4;

/// Files, and which of them are open.
pub struct Files {
    pub memory: Option<Memory>,
    arguments: Vec<u8>,
    count: u32,
    files: HashMap<String, Vec<u8>>,
    open: Vec<Option<Open>>,
    words: Vec<u8>,
}

struct Open {
    name: String,
    at: usize,
}

impl Files {
    pub fn new(arguments: &[&str]) -> Self {
        Self {
            memory: None,
            arguments: arguments.iter().flat_map(|argument| [argument.as_bytes(), &[0]]).flatten().copied().collect(),
            count: arguments.len() as u32,
            files: HashMap::new(),
            open: Vec::new(),
            words: Vec::new(),
        }
    }

    pub fn add(&mut self, name: &str, bytes: &[u8]) {
        self.files.insert(name.to_owned(), bytes.to_vec());
    }

    pub fn take(&mut self, name: &str) -> Option<Vec<u8>> {
        self.files.remove(name)
    }

    /// What the compiler said.
    pub fn words(&self) -> String {
        String::from_utf8_lossy(&self.words).into_owned()
    }

    fn slot(&mut self, descriptor: u32) -> Option<&mut Option<Open>> {
        let at = descriptor.checked_sub(FOLDER + 1)?;
        self.open.get_mut(at as usize)
    }

    fn open(&mut self, descriptor: u32) -> Option<&mut Open> {
        self.slot(descriptor)?.as_mut()
    }

    fn size(&self, name: &str) -> Option<u64> {
        self.files.get(name).map(|bytes| bytes.len() as u64)
    }
}

/// The compiler's memory during a call.
struct View<'a> {
    memory: &'a mut [u8],
    files: &'a mut Files,
}

impl View<'_> {
    fn range(&mut self, at: u32, size: u32) -> Result<&mut [u8], Error> {
        let at = at as usize;
        self.memory.get_mut(at..at + size as usize).ok_or_else(|| Error::new("an address outside of memory"))
    }

    fn put(&mut self, at: u32, bytes: &[u8]) -> Result<(), Error> {
        self.range(at, bytes.len() as u32)?.copy_from_slice(bytes);
        Ok(())
    }

    fn word(&mut self, at: u32) -> Result<u32, Error> {
        let bytes: &[u8] = self.range(at, 4)?;
        Ok(bytes.try_into().map(u32::from_le_bytes).unwrap_or_default())
    }

    /// The name of a file, from the folder of all files.
    fn name(&mut self, at: u32, size: u32) -> Result<String, Error> {
        let name = String::from_utf8_lossy(self.range(at, size)?).into_owned();
        let parts = name.split('/').filter(|part| !part.is_empty() && *part != ".");
        Ok(parts.collect::<Vec<_>>().join("/"))
    }

    /// The parts of memory that a list names.
    fn parts(&mut self, list: u32, count: u32) -> Result<Vec<(u32, u32)>, Error> {
        (0..count).map(|at| Ok((self.word(list + at * 8)?, self.word(list + at * 8 + 4)?))).collect()
    }

    fn stat(&mut self, to: u32, kind: u8, size: u64) -> Result<i32, Error> {
        let mut stat = [0; 64];
        stat[16] = kind;
        stat[24] = 1;
        stat[32..40].copy_from_slice(&size.to_le_bytes());
        self.put(to, &stat)?;
        Ok(DONE)
    }

    fn write(&mut self, descriptor: u32, bytes: &[u8]) -> i32 {
        if descriptor == 1 || descriptor == 2 {
            self.files.words.extend(bytes);
            return DONE;
        }
        let Some(open) = self.files.open(descriptor) else { return BADF };
        let (name, at) = (open.name.clone(), open.at);
        open.at += bytes.len();
        let file = self.files.files.entry(name).or_default();
        let end = at + bytes.len();
        if file.len() < end {
            file.resize(end, 0);
        }
        file[at..end].copy_from_slice(bytes);
        DONE
    }
}

fn view<'a>(caller: &'a mut Caller<Files>) -> Result<View<'a>, Error> {
    let memory = caller.data().memory.ok_or_else(|| Error::new("there is no memory"))?;
    let (memory, files) = memory.data_and_store_mut(caller);
    Ok(View { memory, files })
}

macro_rules! calls {
    ($linker:ident, $($name:literal => |$view:ident $(, $argument:ident : $type:ty)*| $body:block)*) => {
        $($linker.func_wrap(
            "wasi_snapshot_preview1",
            $name,
            |mut caller: Caller<Files> $(, $argument: $type)*| -> Result<i32, Error> {
                #[allow(unused_mut, unused_variables)]
                let mut $view = view(&mut caller)?;
                $body
            },
        )?;)*
    };
}

/// Defines the calls of WASI that the compiler makes.
pub fn link(linker: &mut Linker<Files>) -> Result<(), Error> {
    calls! { linker,
        "args_sizes_get" => |view, count: u32, size: u32| {
            let (found, bytes) = (view.files.count, view.files.arguments.len() as u32);
            view.put(count, &found.to_le_bytes())?;
            view.put(size, &bytes.to_le_bytes())?;
            Ok(DONE)
        }
        "args_get" => |view, list: u32, text: u32| {
            let bytes = view.files.arguments.clone();
            view.put(text, &bytes)?;
            let starts = std::iter::once(0).chain((1..bytes.len()).filter(|at| bytes[at - 1] == 0));
            for (number, start) in starts.enumerate() {
                view.put(list + 4 * number as u32, &(text + start as u32).to_le_bytes())?;
            }
            Ok(DONE)
        }
        "environ_sizes_get" => |view, count: u32, size: u32| {
            view.put(count, &[0; 4])?;
            view.put(size, &[0; 4])?;
            Ok(DONE)
        }
        "environ_get" => |view, _list: u32, _text: u32| { Ok(DONE) }
        "clock_time_get" => |view, _clock: u32, _precision: u64, to: u32| { view.put(to, &[0; 8])?; Ok(DONE) }
        "random_get" => |view, to: u32, size: u32| { view.range(to, size)?.fill(0); Ok(DONE) }
        "fd_close" => |view, descriptor: u32| {
            match view.files.slot(descriptor) {
                Some(open) => *open = None,
                None => return Ok(if descriptor <= FOLDER { DONE } else { BADF }),
            }
            Ok(DONE)
        }
        "fd_fdstat_get" => |view, descriptor: u32, to: u32| {
            let kind = match descriptor {
                0..=2 => 2,
                FOLDER => DIRECTORY,
                _ if view.files.open(descriptor).is_some() => REGULAR,
                _ => return Ok(BADF),
            };
            let mut stat = [0xff; 24];
            stat[..8].copy_from_slice(&[kind, 0, 0, 0, 0, 0, 0, 0]);
            view.put(to, &stat)?;
            Ok(DONE)
        }
        "fd_fdstat_set_flags" => |view, _descriptor: u32, _flags: u32| { Ok(DONE) }
        "fd_filestat_get" => |view, descriptor: u32, to: u32| {
            let Some(name) = view.files.open(descriptor).map(|open| open.name.clone()) else {
                return if descriptor == FOLDER { view.stat(to, DIRECTORY, 0) } else { view.stat(to, 2, 0) };
            };
            let size = view.files.size(&name).unwrap_or(0);
            view.stat(to, REGULAR, size)
        }
        "path_filestat_get" => |view, _folder: u32, _flags: u32, path: u32, length: u32, to: u32| {
            let name = view.name(path, length)?;
            match view.files.size(&name) {
                Some(size) => view.stat(to, REGULAR, size),
                None if name.is_empty() => view.stat(to, DIRECTORY, 0),
                None => Ok(NOENT),
            }
        }
        "fd_prestat_get" => |view, descriptor: u32, to: u32| {
            if descriptor != FOLDER {
                return Ok(BADF);
            }
            view.put(to, &[0, 0, 0, 0, 1, 0, 0, 0])?;
            Ok(DONE)
        }
        "fd_prestat_dir_name" => |view, descriptor: u32, to: u32, size: u32| {
            if descriptor != FOLDER || size < 1 {
                return Ok(BADF);
            }
            view.put(to, b"/")?;
            Ok(DONE)
        }
        "path_open" => |view, _folder: u32, _follow: u32, path: u32, length: u32, how: u32, _rights: u64, _more: u64, _flags: u32, to: u32| {
            let name = view.name(path, length)?;
            let (create, truncate) = (how & 1 != 0, how & 8 != 0);
            if !create && view.files.size(&name).is_none() {
                return Ok(NOENT);
            }
            let file = view.files.files.entry(name.clone()).or_default();
            if truncate {
                file.clear();
            }
            view.files.open.push(Some(Open { name, at: 0 }));
            let descriptor = FOLDER + view.files.open.len() as u32;
            view.put(to, &descriptor.to_le_bytes())?;
            Ok(DONE)
        }
        "path_unlink_file" => |view, _folder: u32, path: u32, length: u32| {
            let name = view.name(path, length)?;
            Ok(if view.files.take(&name).is_some() { DONE } else { NOENT })
        }
        "path_remove_directory" => |view, _folder: u32, _path: u32, _length: u32| { Ok(NOSYS) }
        "path_create_directory" => |view, _folder: u32, _path: u32, _length: u32| { Ok(NOSYS) }
        "fd_seek" => |view, descriptor: u32, offset: i64, whence: u32, to: u32| {
            let Some(name) = view.files.open(descriptor).map(|open| open.name.clone()) else { return Ok(BADF) };
            let end = view.files.size(&name).unwrap_or(0);
            let Some(open) = view.files.open(descriptor) else { return Ok(BADF) };
            let from = match whence {
                0 => 0,
                1 => open.at as u64,
                _ => end,
            };
            let Some(at) = from.checked_add_signed(offset) else { return Ok(INVAL) };
            open.at = at as usize;
            view.put(to, &at.to_le_bytes())?;
            Ok(DONE)
        }
        "fd_read" => |view, descriptor: u32, list: u32, count: u32, to: u32| {
            let mut read = 0;
            for (at, size) in view.parts(list, count)? {
                let Some((name, from)) = view.files.open(descriptor).map(|open| (open.name.clone(), open.at)) else {
                    return Ok(BADF);
                };
                let file = view.files.files.get(&name).map_or(&[][..], Vec::as_slice);
                let rest = &file[from.min(file.len())..];
                let bytes = rest[..rest.len().min(size as usize)].to_vec();
                view.put(at, &bytes)?;
                if let Some(open) = view.files.open(descriptor) {
                    open.at += bytes.len();
                }
                read += bytes.len() as u32;
            }
            view.put(to, &read.to_le_bytes())?;
            Ok(DONE)
        }
        "fd_write" => |view, descriptor: u32, list: u32, count: u32, to: u32| {
            let mut written = 0;
            for (at, size) in view.parts(list, count)? {
                let bytes = view.range(at, size)?.to_vec();
                let end = view.write(descriptor, &bytes);
                if end != DONE {
                    return Ok(end);
                }
                written += size;
            }
            view.put(to, &written.to_le_bytes())?;
            Ok(DONE)
        }
    }
    linker.func_wrap("wasi_snapshot_preview1", "proc_exit", |status: i32| Err::<(), Error>(Error::i32_exit(status)))?;
    Ok(())
}
