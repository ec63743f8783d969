//! What the header of a Parquet page claims, read before the page is: a header of some bytes may claim gigabytes.
//!
//! Its fields: <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>.

use super::thrift::{I32, STRUCT, Thrift, is_true, malformed};
use std::io::{self, Read};

/// `DELTA_BYTE_ARRAY`: each value may begin as the value before it does.
const PREFIXED: i32 = 7;

/// What a page claims.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Claim {
    /// Bytes of its content, once it is decompressed.
    pub bytes: u64,
    /// Its values, nulls included.
    pub values: u64,
    /// Whether a value may be longer than what the page has of it.
    pub is_prefixed: bool,
    /// Bytes of its content that are never compressed: the levels of a page of the second version.
    pub levels: u64,
    /// Whether all of it is as it is, whatever the column has.
    pub is_plain: bool,
}

/// Reads a header.
///
/// # Errors
/// It ends early, or has fields that are not in order, of which `parquet` could read others than this function.
pub(super) fn claim(header: impl Read) -> io::Result<Claim> {
    let (mut header, mut claim, mut id) = (Thrift(header), Claim::default(), 0);
    while let Some(kind) = header.field(&mut id)? {
        match (id, kind) {
            (2, I32) => claim.bytes = header.size()?,
            (1 | 3 | 4, I32) => _ = header.number()?,
            (6, STRUCT) => header.skip(STRUCT, 0)?,
            (5, STRUCT) => page(&mut header, 4, 2, &mut claim)?,
            (7, STRUCT) => page(&mut header, 2, 2, &mut claim)?,
            (8, STRUCT) => page(&mut header, 6, 4, &mut claim)?,
            (1..=8, _) => return Err(malformed()),
            (_, other) => header.skip(other, 0)?,
        }
    }
    Ok(claim)
}

/// The part about one kind of page, whose first fields are `numbers`. The field `encoding` is its encoding.
fn page(header: &mut Thrift<impl Read>, numbers: u16, encoding: u16, claim: &mut Claim) -> io::Result<()> {
    let mut id = 0;
    while let Some(kind) = header.field(&mut id)? {
        match (id, kind) {
            (1, I32) => claim.values = claim.values.max(header.size()?),
            (_, I32) if id == encoding => claim.is_prefixed |= header.number()? == PREFIXED,
            (5 | 6, I32) if numbers == 6 => claim.levels += header.size()?,
            (7, 1 | 2) if numbers == 6 => claim.is_plain = !is_true(kind),
            (_, other) if id > numbers || other == I32 => header.skip(other, 0)?,
            _ => return Err(malformed()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::ErrorKind;

    /// The sizes 1000 and 10 of a page of the kind `kind`, and then `rest`.
    fn header(kind: u8, rest: &[u8]) -> io::Result<Claim> {
        claim(&[&[0x15, 2 * kind, 0x15, 0xd0, 0x0f, 0x15, 20], rest].concat()[..])
    }

    #[test]
    fn a_page_of_each_kind_has_its_size_and_values() {
        let expected = |is_prefixed| Claim { bytes: 1000, values: 7, is_prefixed, ..Claim::default() };
        // A checksum, and a page with four encodings and statistics: a text, and two fields that are booleans.
        let data = [0x15, 8, 0x1c, 0x15, 14, 0x15, 0, 0x15, 6, 0x15, 6, 0x1c, 0x18, 2, b'a', b'b', 0x61, 0x12, 0, 0, 0];
        assert_eq!(header(0, &data).unwrap(), expected(false));
        assert_eq!(header(2, &[0x4c, 0x15, 14, 0x15, 4, 0x11, 0, 0]).unwrap(), expected(false));
        // Levels of 3 and 5 bytes, and a page that is compressed, one that is not, and one that does not tell.
        let second = |flag: &[u8]| {
            let part = [0x5c, 0x15, 14, 0x15, 0, 0x15, 14, 0x15, 14, 0x15, 6, 0x15, 10];
            header(3, &[&part, flag, &[0, 0]].concat()).unwrap()
        };
        for (flag, is_plain) in [(&[0x11][..], false), (&[0x12], true), (&[], false)] {
            assert_eq!(second(flag), Claim { levels: 8, is_plain, ..expected(true) });
        }
    }

    #[test]
    fn a_header_that_could_be_read_otherwise_is_refused() {
        let refused = |rest: &[u8]| header(0, rest).unwrap_err().kind();
        // The size once more, in the long form of a field.
        assert_eq!(refused(&[0x05, 4, 0xd0, 0x0f, 0]), ErrorKind::InvalidData);
        // Values that are not a number of 32 bits.
        assert_eq!(refused(&[0x2c, 0x16, 14, 0, 0]), ErrorKind::InvalidData);
        assert_eq!(refused(&[0x25, 14, 0]), ErrorKind::InvalidData);
        // A list of two thousand million bytes, and a text as long, which are not there.
        assert_eq!(refused(&[0x99, 0xf3, 0xff, 0xff, 0xff, 0xff, 0x07]), ErrorKind::UnexpectedEof);
        assert_eq!(refused(&[0x98, 0xff, 0xff, 0xff, 0xff, 0x07]), ErrorKind::UnexpectedEof);
        // A map.
        assert_eq!(refused(&[0x9b, 0]), ErrorKind::InvalidData);
        // Structs in structs.
        assert_eq!(refused(&[0x9c; 100]), ErrorKind::InvalidData);
    }

    #[test]
    fn numbers_have_the_bits_that_parquet_reads() {
        let claimed = |size: &[u8]| claim(&[&[0x15, 0, 0x15], size, &[0]].concat()[..]).unwrap().bytes;
        assert_eq!(claimed(&[0xfe, 0xff, 0xff, 0xff, 0x0f]), (1 << 31) - 1);
        assert_eq!(claimed(&[0xff, 0xff, 0xff, 0xff, 0x0f]), 0);
        // 2^32 + 5
        assert_eq!(claimed(&[0x8a, 0x80, 0x80, 0x80, 0x20]), 5);
    }
}
