//! The program and its libraries: how their code is unwound, and what their functions are called.

use framehop::{ExplicitModuleSectionInfo, Module};
use memmap2::Mmap;
use object::elf::PF_X;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SegmentFlags};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// A file whose code this process has in its memory.
pub struct MappedFile {
    path: PathBuf,
    /// Where the code is in memory.
    code: Range<u64>,
    /// Where the code begins in the file.
    offset: u64,
    bytes: Mmap,
}

impl MappedFile {
    /// All of this process. One that was replaced since it was loaded is left out.
    pub fn all() -> Vec<Self> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
        maps.lines().filter_map(Self::of_line).collect()
    }

    /// Reads a line such as `7f12a000-7f13b000 r-xp 0002a000 fe:00 1234   /lib/libc.so.6`.
    fn of_line(line: &str) -> Option<Self> {
        let (fields, path) = line.split_at_checked(line.find('/')?)?;
        let fields: Vec<&str> = fields.split_whitespace().collect();
        let [addresses, rights, offset, _, inode] = fields[..] else { return None };
        if !rights.contains('x') {
            return None;
        }
        let number = |text| u64::from_str_radix(text, 16).ok();
        let (start, end) = addresses.split_once('-')?;
        let file = File::open(path).ok()?;
        if file.metadata().ok()?.ino().to_string() != inode {
            return None;
        }
        // SAFETY: code that a process has in its memory is not written to: who installs or compiles it makes another file.
        let bytes = unsafe { Mmap::map(&file) }.ok()?;
        Some(Self { path: path.into(), code: number(start)?..number(end)?, offset: number(offset)?, bytes })
    }
}

/// What a file says of its code.
pub struct Library<'a> {
    file: &'a MappedFile,
    object: object::File<'a>,
    /// What is added to an address of the file for the address in memory.
    start: u64,
}

impl<'a> Library<'a> {
    /// Reads a file; nothing if it is no library.
    pub fn of(file: &'a MappedFile) -> Option<Self> {
        let object = object::File::parse(&*file.bytes).ok()?;
        let code = file.offset..file.offset.checked_add(file.code.end.checked_sub(file.code.start)?)?;
        // Segments need not begin at a page, so that the first page may hold the end of another.
        let segment = object.segments().find(|segment| {
            let (begin, size) = segment.file_range();
            let is_code = matches!(segment.flags(), SegmentFlags::Elf { p_flags, .. } if p_flags & PF_X != 0);
            is_code && begin < code.end && code.start < begin.saturating_add(size)
        })?;
        let of_file = segment.address().wrapping_sub(segment.file_range().0).wrapping_add(file.offset);
        let start = file.code.start.wrapping_sub(of_file);
        Some(Self { file, object, start })
    }

    /// How to unwind its code.
    pub fn module(&self) -> Module<&'a [u8]> {
        let section = |name: &str| self.object.section_by_name(name);
        let range = |name| section(name).map(|it| it.address()..it.address().saturating_add(it.size()));
        let bytes = |name| section(name).and_then(|it| self.bytes(&it));
        let sections = ExplicitModuleSectionInfo {
            text_svma: range(".text"),
            text: bytes(".text"),
            got_svma: range(".got"),
            eh_frame_svma: range(".eh_frame"),
            eh_frame: bytes(".eh_frame"),
            eh_frame_hdr_svma: range(".eh_frame_hdr"),
            eh_frame_hdr: bytes(".eh_frame_hdr"),
            ..Default::default()
        };
        Module::new(self.file.path.display().to_string(), self.file.code.clone(), self.start, sections)
    }

    /// Where a section is in the file.
    fn bytes<'b>(&self, section: &impl ObjectSection<'b>) -> Option<&'a [u8]> {
        let (begin, size) = section.file_range()?;
        let [begin, size] = [begin, size].map(usize::try_from);
        let begin = begin.ok()?;
        self.file.bytes.get(begin..begin.checked_add(size.ok()?)?)
    }

    /// Names the addresses in its code: by the function, or the place if it is not known, and by the file if it is not the
    /// program.
    pub fn names(&self, addresses: &BTreeSet<u64>) -> BTreeMap<u64, String> {
        let mut functions: BTreeMap<u64, Option<String>> =
            addresses.range(self.file.code.clone()).map(|address| (*address, None)).collect();
        if functions.is_empty() {
            return BTreeMap::new();
        }
        for symbol in self.object.symbols().chain(self.object.dynamic_symbols()) {
            let begin = self.start.wrapping_add(symbol.address());
            for (_, function) in functions.range_mut(begin..begin.saturating_add(symbol.size())) {
                *function = symbol.name().ok().map(demangled);
            }
        }
        let is_program = std::fs::read_link("/proc/self/exe").is_ok_and(|program| program == self.file.path);
        let file = self.file.path.file_name().map(Path::new).unwrap_or(&self.file.path).display();
        let names = functions.into_iter().map(|(address, function)| {
            let function = function.unwrap_or_else(|| format!("{:#x}", address.wrapping_sub(self.start)));
            (address, if is_program { function } else { format!("{function} ({file})") })
        });
        names.collect()
    }
}

/// The name of a function as its language writes it.
fn demangled(name: &str) -> String {
    if let Ok(name) = rustc_demangle::try_demangle(name) {
        return format!("{name:#}");
    }
    let cpp = cpp_demangle::Symbol::new(name).ok().and_then(|name| name.demangle().ok());
    cpp.unwrap_or_else(|| name.to_owned())
}
