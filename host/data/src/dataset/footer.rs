//! The schema in the footer of a Parquet file, checked before `parquet` reads it: for each group within another, it calls
//! itself once more, and a footer of some kilobytes may have groups enough for any stack.

use super::thrift::{BINARY, BYTE, I32, LIST, STRUCT, Thrift, is_boolean, malformed};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::ParquetMetaDataReader;
use parquet::schema::types::SchemaDescPtr;
use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::FileExt;

/// The most bytes of a footer. What it has of a column takes several times as many in memory.
const MOST_BYTES: u64 = 32 << 20;
/// The most groups within each other. Reading one takes up to 16 KB of a thread's stack, which may have 2 MiB.
const MOST_LEVELS: usize = 64;

/// What a field must be, so that `parquet`, which does not look at the types of fields, reads what is checked here.
enum Shape {
    Of(u8),
    Flag,
    Fields(&'static [(u16, Shape)]),
}

use Shape::{Fields, Flag, Of};

const NOTHING: Shape = Fields(&[]);
const TIME: Shape = Fields(&[(1, Flag), (2, Fields(&[(1, NOTHING), (2, NOTHING), (3, NOTHING)]))]);
/// The fields of `SchemaElement`.
const ELEMENT: &[(u16, Shape)] = &[
    (1, Of(I32)),
    (2, Of(I32)),
    (3, Of(I32)),
    (4, Of(BINARY)),
    (5, Of(I32)),
    (6, Of(I32)),
    (7, Of(I32)),
    (8, Of(I32)),
    (9, Of(I32)),
    (10, Fields(LOGICAL_TYPE)),
];
const LOGICAL_TYPE: &[(u16, Shape)] = &[
    (1, NOTHING),
    (2, NOTHING),
    (3, NOTHING),
    (4, NOTHING),
    (5, Fields(&[(1, Of(I32)), (2, Of(I32))])),
    (6, NOTHING),
    (7, TIME),
    (8, TIME),
    (10, Fields(&[(1, Of(BYTE)), (2, Flag)])),
    (11, NOTHING),
    (12, NOTHING),
    (13, NOTHING),
    (14, NOTHING),
    (15, NOTHING),
    (16, Fields(&[(1, Of(BYTE))])),
    (17, Fields(&[(1, Of(BINARY))])),
    (18, Fields(&[(1, Of(BINARY)), (2, Of(I32))])),
    (19, NOTHING),
];

/// The schema of a file; nothing if it does not end as a Parquet file does, which `parquet` reports.
///
/// # Errors
/// The footer is too long, or its schema is malformed or too deep.
pub(super) fn schema(file: &File) -> Result<Option<SchemaDescPtr>> {
    let Some(end) = file.metadata()?.len().checked_sub(8) else { return Ok(None) };
    let mut tail = [0; 8];
    file.read_exact_at(&mut tail, end)?;
    let (length, mark) = (u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]])), &tail[4..]);
    let Some(start) = end.checked_sub(length).filter(|_| mark == b"PAR1") else { return Ok(None) };
    if length > MOST_BYTES {
        return Err(ParquetError::General(format!("its footer has {length} bytes, more than {MOST_BYTES}")));
    }
    let mut footer = vec![0; length as usize];
    file.read_exact_at(&mut footer, start)?;
    // Nothing behind the schema is read as a schema.
    let end = check(&footer).map_err(|error| match error.kind() {
        ErrorKind::UnexpectedEof => io::Error::new(ErrorKind::UnexpectedEof, "its footer ends early"),
        _ => error,
    })?;
    ParquetMetaDataReader::decode_schema(&footer[..end]).map(Some)
}

/// Checks the schema of a footer. Returns where it ends.
fn check(footer: &[u8]) -> io::Result<usize> {
    let (mut rest, mut id) = (footer, 0);
    let mut thrift = Thrift(&mut rest);
    let version = thrift.field(&mut id)?;
    if (version, id) != (Some(I32), 1) {
        return Err(malformed());
    }
    thrift.number()?;
    let schema = thrift.field(&mut id)?;
    if (schema, id) != (Some(LIST), 2) {
        return Err(malformed());
    }
    match thrift.list()? {
        (STRUCT, count) => elements(&mut thrift, count)?,
        _ => return Err(malformed()),
    }
    Ok(footer.len() - rest.len())
}

/// Checks the `count` elements of a schema: a group comes before its children.
fn elements(thrift: &mut Thrift<impl Read>, count: u64) -> io::Result<()> {
    let wrong = |what: String| io::Error::new(ErrorKind::InvalidData, what);
    // The children to come: of each group that the next element is in, and of all of them.
    let (mut groups, mut to_come): (Vec<u64>, u64) = (Vec::new(), 0);
    for left in (0..count).rev() {
        let children = element(thrift)?;
        if let Some(siblings) = groups.last_mut() {
            *siblings -= 1;
            to_come -= 1;
        }
        to_come += children;
        if to_come > left {
            return Err(wrong("its schema has fewer columns than its groups".into()));
        }
        if children > 0 {
            groups.push(children);
        }
        if groups.len() > MOST_LEVELS {
            return Err(wrong(format!("its schema has more than {MOST_LEVELS} groups within each other")));
        }
        while groups.pop_if(|children| *children == 0).is_some() {}
    }
    Ok(())
}

/// Checks an element. Returns how many children it has.
fn element(thrift: &mut Thrift<impl Read>) -> io::Result<u64> {
    let (mut id, mut children) = (0, 0);
    while let Some(kind) = thrift.field(&mut id)? {
        match (id, kind) {
            (5, I32) => children = thrift.size()?,
            _ => skip(thrift, ELEMENT, id, kind)?,
        }
    }
    Ok(children)
}

/// Skips a field of a struct with these fields.
fn skip(thrift: &mut Thrift<impl Read>, fields: &[(u16, Shape)], id: u16, kind: u8) -> io::Result<()> {
    match fields.iter().find(|(known, _)| *known == id).map(|(_, shape)| shape) {
        Some(Of(of)) if *of == kind => thrift.skip(kind, 0),
        Some(Flag) if is_boolean(kind) => Ok(()),
        Some(Fields(fields)) if kind == STRUCT => {
            let mut id = 0;
            while let Some(kind) = thrift.field(&mut id)? {
                skip(thrift, fields, id, kind)?;
            }
            Ok(())
        }
        Some(_) => Err(malformed()),
        // `parquet` skips it too.
        None => thrift.skip(kind, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A footer whose schema has these elements, each with a name and its number of children, and its further fields.
    fn footer(elements: &[(u8, &[u8])]) -> Vec<u8> {
        let count = elements.len() as u16;
        let mut footer = vec![0x15, 2, 0x19, 0xfc, count as u8 & 0x7f | 0x80, (count >> 7) as u8];
        for (children, more) in elements {
            footer.extend([0x35, 0, 0x18, 1, b'a', 0x15, 2 * children]);
            footer.extend_from_slice(more);
            footer.push(0);
        }
        footer
    }

    fn refused(elements: &[(u8, &[u8])]) -> String {
        check(&footer(elements)).unwrap_err().to_string()
    }

    #[test]
    fn a_schema_has_its_children_and_few_groups_within_each_other() {
        let deep = |levels: usize| vec![(1, &[][..]); levels].into_iter().chain([(0, &[][..])]).collect::<Vec<_>>();
        let whole = footer(&deep(MOST_LEVELS));
        assert_eq!(check(&[&whole[..], &[0x16, 2, 0]].concat()).unwrap(), whole.len());
        assert_eq!(refused(&deep(MOST_LEVELS + 1)), "its schema has more than 64 groups within each other");
        // Beside each other, they are not within each other.
        let beside: Vec<(u8, &[u8])> = vec![(3, &[]), (1, &[]), (0, &[]), (2, &[]), (0, &[]), (0, &[]), (0, &[])];
        assert!(check(&footer(&beside)).is_ok());
        for short in [vec![(1, &[][..])], vec![(2, &[]), (1, &[]), (0, &[])], vec![(60, &[]), (0, &[])]] {
            assert_eq!(refused(&short), "its schema has fewer columns than its groups");
        }
    }

    #[test]
    fn a_field_of_another_type_is_refused() {
        // The logical types TIMESTAMP, in milliseconds and adjusted to UTC, INTEGER, and GEOMETRY, whose number is long.
        for good in [
            &[0x5c, 0x8c, 0x11, 0x1c, 0x1c, 0, 0, 0, 0][..],
            &[0x5c, 0xac, 0x13, 64, 0x12, 0, 0],
            &[0x5c, 0x0c, 34, 0x18, 2, b'x', b'y', 0, 0],
            // A field and a logical type that are not known yet.
            &[0x98, 2, b'x', b'y'],
            &[0x5c, 0x0c, 80, 0x16, 8, 0, 0],
        ] {
            assert!(check(&footer(&[(0, good)])).is_ok(), "{good:?}");
        }
        for bad in [
            // A scale that is a text, a logical type that is a number, a unit that is a text, a flag that is a number.
            &[0x28, 2, b'x', b'y'][..],
            &[0x55, 2],
            &[0x5c, 0x8c, 0x11, 0x18, 0, 0, 0],
            &[0x5c, 0x8c, 0x15, 2, 0, 0],
            // The number of children once more, in the long form.
            &[0x05, 10, 2],
        ] {
            assert_eq!(refused(&[(0, bad)]), malformed().to_string(), "{bad:?}");
        }
    }
}
