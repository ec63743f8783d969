//! What the header of a Parquet page claims, read before the page is: a header of some bytes may claim gigabytes.
//!
//! A header is a struct of Thrift's compact protocol:
//! <https://github.com/apache/parquet-format/blob/master/src/main/thrift/parquet.thrift>.

use std::io::{self, ErrorKind, Read};

// Types of Thrift.
const BYTE: u8 = 3;
const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;
const UUID: u8 = 13;
/// `DELTA_BYTE_ARRAY`: each value may begin as the value before it does.
const PREFIXED: i32 = 7;
/// The most structs and lists within each other; `parquet` reads as many.
const DEPTH: usize = 64;

/// What a page claims.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Claim {
    /// Bytes of its content, once it is decompressed.
    pub bytes: u64,
    /// Its values, nulls included.
    pub values: u64,
    /// Whether a value may be longer than what the page has of it.
    pub is_prefixed: bool,
}

/// Reads a header.
///
/// # Errors
/// It ends early, or has fields that are not in order, of which `parquet` could read others than this function.
pub(super) fn claim(header: impl Read) -> io::Result<Claim> {
    let (mut header, mut claim, mut id) = (Header(header), Claim::default(), 0);
    while let Some(kind) = header.field(&mut id)? {
        match (id, kind) {
            (2, I32) => claim.bytes = header.size()?,
            (1 | 3 | 4, I32) => _ = header.number()?,
            (6, STRUCT) => header.skip(STRUCT, 0)?,
            (5, STRUCT) => header.page(4, 2, &mut claim)?,
            (7, STRUCT) => header.page(2, 2, &mut claim)?,
            (8, STRUCT) => header.page(6, 4, &mut claim)?,
            (1..=8, _) => return Err(malformed()),
            (_, other) => header.skip(other, 0)?,
        }
    }
    Ok(claim)
}

fn malformed() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "the header of a page is malformed")
}

struct Header<R>(R);

impl<R: Read> Header<R> {
    /// The part about one kind of page, whose first fields are `numbers`. The field `encoding` is its encoding.
    fn page(&mut self, numbers: u16, encoding: u16, claim: &mut Claim) -> io::Result<()> {
        let mut id = 0;
        while let Some(kind) = self.field(&mut id)? {
            match (id, kind) {
                (1, I32) => claim.values = claim.values.max(self.size()?),
                (_, I32) if id == encoding => claim.is_prefixed |= self.number()? == PREFIXED,
                (_, other) if id > numbers || other == I32 => self.skip(other, 0)?,
                _ => return Err(malformed()),
            }
        }
        Ok(())
    }

    /// The type of the next field, whose number is after `id`; `None` at the end of the struct.
    fn field(&mut self, id: &mut u16) -> io::Result<Option<u8>> {
        let head = self.byte()?;
        match (head & 0x0f, head >> 4) {
            (0, _) => Ok(None),
            (_, 0) => Err(malformed()),
            (kind, delta) => {
                *id = id.checked_add(delta.into()).ok_or_else(malformed)?;
                Ok(Some(kind))
            }
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        if depth > DEPTH {
            return Err(malformed());
        }
        match kind {
            // A boolean has its value in its type.
            1 | 2 => {}
            BYTE => _ = self.byte()?,
            4..=I64 => _ = self.varint()?,
            DOUBLE => self.skip_bytes(8)?,
            UUID => self.skip_bytes(16)?,
            BINARY => {
                let length = self.varint()?;
                self.skip_bytes(length)?;
            }
            LIST | SET => {
                let head = self.byte()?;
                let length = if head >> 4 == 0x0f { self.varint()? } else { u64::from(head >> 4) };
                match head & 0x0f {
                    // `parquet` reads no byte of a boolean here either.
                    1 | 2 => {}
                    item => (0..length).try_for_each(|_| self.skip(item, depth + 1))?,
                }
            }
            STRUCT => loop {
                let head = self.byte()?;
                if head & 0x0f == 0 {
                    break;
                }
                if head >> 4 == 0 {
                    self.varint()?;
                }
                self.skip(head & 0x0f, depth + 1)?;
            },
            _ => return Err(malformed()),
        }
        Ok(())
    }

    /// A number that is not negative; a negative one is 0, and `parquet` refuses it.
    fn size(&mut self) -> io::Result<u64> {
        Ok(u64::try_from(self.number()?).unwrap_or_default())
    }

    fn number(&mut self) -> io::Result<i32> {
        let zigzag = self.varint()?;
        // `parquet` cuts off the same bits.
        Ok(((zigzag >> 1) as i64 ^ -((zigzag & 1) as i64)) as i32)
    }

    fn varint(&mut self) -> io::Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(malformed())
    }

    fn byte(&mut self) -> io::Result<u8> {
        let mut byte = [0];
        self.0.read_exact(&mut byte)?;
        Ok(byte[0])
    }

    fn skip_bytes(&mut self, length: u64) -> io::Result<()> {
        match io::copy(&mut self.0.by_ref().take(length), &mut io::sink())? == length {
            true => Ok(()),
            false => Err(ErrorKind::UnexpectedEof.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sizes 1000 and 10 of a page of the kind `kind`, and then `rest`.
    fn header(kind: u8, rest: &[u8]) -> io::Result<Claim> {
        claim(&[&[0x15, 2 * kind, 0x15, 0xd0, 0x0f, 0x15, 20], rest].concat()[..])
    }

    #[test]
    fn a_page_of_each_kind_has_its_size_and_values() {
        let expected = |is_prefixed| Claim { bytes: 1000, values: 7, is_prefixed };
        // A checksum, and a page with four encodings and statistics: a text, and two fields that are booleans.
        let data = [0x15, 8, 0x1c, 0x15, 14, 0x15, 0, 0x15, 6, 0x15, 6, 0x1c, 0x18, 2, b'a', b'b', 0x61, 0x12, 0, 0, 0];
        assert_eq!(header(0, &data).unwrap(), expected(false));
        assert_eq!(header(2, &[0x4c, 0x15, 14, 0x15, 4, 0x11, 0, 0]).unwrap(), expected(false));
        let second = [0x5c, 0x15, 14, 0x15, 0, 0x15, 14, 0x15, 14, 0x15, 0, 0x15, 0, 0, 0];
        assert_eq!(header(3, &second).unwrap(), expected(true));
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
