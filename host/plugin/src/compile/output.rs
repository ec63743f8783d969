//! What the compiler returns.

use super::cache::Key;
use std::io::{self, Write};

/// The code of a component.
pub(super) struct Output {
    pub(super) component: Vec<u8>,
    /// The code that it imports.
    pub(super) modules: Vec<ModuleOutput>,
}

/// The code of a module, which other components import too.
pub(super) struct ModuleOutput {
    /// Its key in the cache.
    pub(super) key: Key,
    /// `None` if it was in the cache.
    pub(super) code: Option<Vec<u8>>,
}

/// The bytes of a length.
const LENGTH: usize = size_of::<u64>();

impl Output {
    /// Writes the number of modules; the length of the component's code, and the code; and, for each module, its key, and
    /// the same of its code.
    pub(super) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        out.write_all(&(self.modules.len() as u64).to_le_bytes())?;
        write_code(out, &self.component)?;
        for module in &self.modules {
            out.write_all(module.key.0.as_bytes())?;
            write_code(out, module.code.as_deref().unwrap_or_default())?;
        }
        out.flush()
    }

    /// Reads what [`write`](Self::write) has written; `None` if it is something else.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk::<LENGTH>()?;
        let (component, mut rest) = read_code(rest)?;
        let mut modules = Vec::new();
        for _ in 0..u64::from_le_bytes(*count) {
            let (key, code) = rest.split_at_checked(Key::LENGTH)?;
            let key = Key::parse(std::str::from_utf8(key).ok()?)?;
            let (code, others) = read_code(code)?;
            modules.push(ModuleOutput { key, code: (!code.is_empty()).then(|| code.to_vec()) });
            rest = others;
        }
        rest.is_empty().then(|| Self { component: component.to_vec(), modules })
    }
}

fn write_code(out: &mut impl Write, code: &[u8]) -> io::Result<()> {
    out.write_all(&(code.len() as u64).to_le_bytes())?;
    out.write_all(code)
}

/// The code at the start, and what follows.
fn read_code(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<LENGTH>()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn module(code: Option<Vec<u8>>) -> ModuleOutput {
        ModuleOutput { key: Key::parse(&"0a".repeat(32)).unwrap(), code }
    }

    fn written(output: &Output) -> Vec<u8> {
        let mut bytes = Vec::new();
        output.write(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn what_is_written_is_read() {
        for code in [vec![], vec![None], vec![Some(vec![1, 2]), None, Some(vec![3])]] {
            let modules = code.iter().cloned().map(module).collect();
            let read = Output::read(&written(&Output { component: vec![7; 300], modules })).unwrap();
            assert_eq!(read.component, [7; 300]);
            assert!(read.modules.iter().all(|read| read.key.0 == module(None).key.0));
            assert_eq!(read.modules.into_iter().map(|module| module.code).collect::<Vec<_>>(), code);
        }
    }

    #[test]
    fn what_is_cut_is_not_read() {
        let bytes = written(&Output { component: vec![7; 3], modules: vec![module(Some(vec![1; 5]))] });
        let whole = |bytes: &[u8]| Output::read(bytes).is_some();
        assert_eq!((0..=bytes.len()).filter(|end| whole(&bytes[..*end])).collect::<Vec<_>>(), [bytes.len()]);
        assert!(!whole(&[&bytes[..], b"x"].concat()), "it is longer");
        let key = 2 * LENGTH + 3;
        assert!(!whole(&[&bytes[..key], &[b'/'; Key::LENGTH], &bytes[key + Key::LENGTH..]].concat()));
    }
}
