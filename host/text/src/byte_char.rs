//! The characters that byte-level vocabularies write for bytes.

/// The character that stands for a byte in byte-level vocabularies
/// (`bytes_to_unicode` of GPT-2): the byte's own where it is printable, else
/// the next free one from U+0100 on.
pub(crate) fn byte_char(byte: u8) -> char {
    let printable = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..);
    if printable(byte) {
        return byte.into();
    }
    let offset = (0..byte).filter(|&other| !printable(other)).count() as u8;
    // U+0100 to U+0143, as 68 bytes are not printable.
    char::from_u32(0x100 + u32::from(offset)).unwrap_or(char::REPLACEMENT_CHARACTER)
}
