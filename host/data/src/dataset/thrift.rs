//! Structs in Thrift's compact protocol, as Parquet files have them:
//! <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>.

use std::io::{self, ErrorKind, Read};

pub(super) const BYTE: u8 = 3;
pub(super) const I32: u8 = 5;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
pub(super) const BINARY: u8 = 8;
pub(super) const LIST: u8 = 9;
const SET: u8 = 10;
pub(super) const STRUCT: u8 = 12;
const UUID: u8 = 13;
/// The most structs and lists within each other; `parquet` reads as many.
const DEPTH: usize = 64;

/// Reads structs.
pub(super) struct Thrift<R>(pub R);

/// The error of bytes that `parquet` could read otherwise.
pub(super) fn malformed() -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "its structs are malformed")
}

/// Whether a field is a boolean, whose value is its type.
pub(super) fn is_boolean(kind: u8) -> bool {
    matches!(kind, 1 | 2)
}

/// The value of a boolean.
pub(super) fn is_true(kind: u8) -> bool {
    kind == 1
}

impl<R: Read> Thrift<R> {
    /// The type of the next field, whose number is after `id`; `None` at the end of the struct.
    pub(super) fn field(&mut self, id: &mut u16) -> io::Result<Option<u8>> {
        let head = self.byte()?;
        match (head & 0x0f, head >> 4) {
            (0, _) => Ok(None),
            (kind, 0) => {
                let zigzag = self.varint()?;
                let later = u16::try_from(zigzag).ok().filter(|zigzag| zigzag & 1 == 0).map(|zigzag| zigzag >> 1);
                *id = later.filter(|later| *later > *id).ok_or_else(malformed)?;
                Ok(Some(kind))
            }
            (kind, delta) => {
                *id = id.checked_add(delta.into()).ok_or_else(malformed)?;
                Ok(Some(kind))
            }
        }
    }

    pub(super) fn skip(&mut self, kind: u8, depth: usize) -> io::Result<()> {
        if depth > DEPTH {
            return Err(malformed());
        }
        match kind {
            kind if is_boolean(kind) => {}
            BYTE => _ = self.byte()?,
            4..=I64 => _ = self.varint()?,
            DOUBLE => self.skip_bytes(8)?,
            UUID => self.skip_bytes(16)?,
            BINARY => {
                let length = self.varint()?;
                self.skip_bytes(length)?;
            }
            LIST | SET => {
                let (item, length) = self.list()?;
                // `parquet` reads no byte of a boolean here either.
                if !is_boolean(item) {
                    (0..length).try_for_each(|_| self.skip(item, depth + 1))?;
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

    /// The type and the number of the items of a list.
    pub(super) fn list(&mut self) -> io::Result<(u8, u64)> {
        let head = self.byte()?;
        Ok((head & 0x0f, if head >> 4 == 0x0f { self.varint()? } else { u64::from(head >> 4) }))
    }

    /// A number that is not negative; a negative one is 0, and `parquet` refuses it.
    pub(super) fn size(&mut self) -> io::Result<u64> {
        Ok(u64::try_from(self.number()?).unwrap_or_default())
    }

    pub(super) fn number(&mut self) -> io::Result<i32> {
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
