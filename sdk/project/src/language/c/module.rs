//! The module that the linker writes.

/// The module without its debugging information, which is most of it and names files of this machine. The names of
/// functions stay. Bytes that are not a module stay as they are; the next tool refuses them.
pub(super) fn without_debugging(module: &[u8]) -> Vec<u8> {
    kept(module).unwrap_or_else(|| module.to_vec())
}

fn kept(module: &[u8]) -> Option<Vec<u8>> {
    const HEADER: usize = 8;
    const CUSTOM: u8 = 0;
    let mut kept = module.get(..HEADER)?.to_vec();
    let mut rest = &module[HEADER..];
    while let [id, after @ ..] = rest {
        let (size, content) = number(after)?;
        let (content, next) = content.split_at_checked(size)?;
        let is_debugging = *id == CUSTOM && name(content)?.starts_with(b".debug_");
        if !is_debugging {
            kept.extend_from_slice(&rest[..rest.len() - next.len()]);
        }
        rest = next;
    }
    Some(kept)
}

/// The name of a custom section.
fn name(section: &[u8]) -> Option<&[u8]> {
    let (size, rest) = number(section)?;
    rest.get(..size)
}

/// The number in LEB128 that the bytes begin with, and the rest.
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let mut value = 0u64;
    for (at, byte) in bytes.iter().take(5).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return Some((usize::try_from(value).ok()?, &bytes[at + 1..]));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(id: u8, content: &[u8]) -> Vec<u8> {
        // A size may be written in more bytes than it needs.
        [&[id, content.len() as u8 | 0x80, 0][..], content].concat()
    }

    #[test]
    fn only_debugging_information_goes() {
        let header = b"\0asm\x01\0\0\0".to_vec();
        let (code, names) = (section(10, &[0]), section(0, b"\x04name\x01"));
        let module = [&header[..], &section(0, b"\x0b.debug_info\x07"), &code, &section(0, b"\x0a.debug_str"), &names];
        assert_eq!(without_debugging(&module.concat()), [&header[..], &code, &names].concat());
    }

    #[test]
    fn what_is_not_a_module_stays_as_it_is() {
        for bytes in [&b""[..], b"\0asm", b"\0asm\x01\0\0\0\0\x7f", b"\0asm\x01\0\0\0\0\xff\xff\xff\xff\xff\xff"] {
            assert_eq!(without_debugging(bytes), bytes);
        }
    }
}
