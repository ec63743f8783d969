//! How far the content of a page expands. `parquet` decompresses some kinds to their end, whatever their header claims,
//! and some kilobytes may expand to gigabytes.

use super::page_header::Claim;
use brotli::Decompressor;
use flate2::read::MultiGzDecoder;
use lz4_flex::frame::FrameDecoder;
use parquet::basic::Compression;
use std::io::{self, ErrorKind, Read};

/// Bytes that are decompressed at once.
const BUFFER: usize = 64 << 10;

/// Checks that the content of a page does not expand to more than it claims.
///
/// # Errors
/// It does.
pub(super) fn check(compression: Compression, content: &[u8], claim: &Claim) -> io::Result<()> {
    let most = claim.bytes.saturating_sub(claim.levels);
    // Levels beyond the content are reported by `parquet`.
    let levels = usize::try_from(claim.levels).unwrap_or(usize::MAX);
    let Some(content) = content.get(levels..).filter(|_| !claim.is_plain) else { return Ok(()) };
    let is_more = match compression {
        Compression::GZIP(_) => is_more(MultiGzDecoder::new(content), most),
        Compression::BROTLI(_) => is_more(Decompressor::new(content, BUFFER), most),
        // Files of older programs have frames.
        Compression::LZ4 => is_more(FrameDecoder::new(content), most),
        _ => false,
    };
    match is_more {
        true => {
            let what = format!("a page expands to more than the {most} bytes that its header claims");
            Err(io::Error::new(ErrorKind::InvalidData, what))
        }
        false => Ok(()),
    }
}

/// Whether there are more than `most` bytes before an end or an error, which `parquet` reports.
fn is_more(mut from: impl Read, most: u64) -> bool {
    let (mut buffer, mut read) = (vec![0; BUFFER], 0);
    while read <= most {
        match from.read(&mut buffer) {
            Ok(0) => return false,
            Ok(more) => read += more as u64,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn frame(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = lz4_flex::frame::FrameEncoder::new(Vec::new());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn brotli(bytes: &[u8]) -> Vec<u8> {
        let mut packed = Vec::new();
        brotli::CompressorWriter::new(&mut packed, BUFFER, 5, 20).write_all(bytes).unwrap();
        packed
    }

    #[test]
    fn content_expands_to_no_more_than_its_claim() {
        let bytes = vec![b'x'; 300_000];
        let claim = |bytes: u64| Claim { bytes, ..Claim::default() };
        let (gz, br) = (Compression::GZIP(Default::default()), Compression::BROTLI(Default::default()));
        for (compression, packed) in [(gz, gzip(&bytes)), (br, brotli(&bytes)), (Compression::LZ4, frame(&bytes))] {
            assert!(packed.len() < 10_000);
            let check = |content: &[u8], claim: Claim| check(compression, content, &claim).map_err(|e| e.to_string());
            let says = Err("a page expands to more than the 299999 bytes that its header claims".to_owned());
            assert_eq!(check(&packed, claim(300_000)), Ok(()), "{compression}");
            assert_eq!(check(&packed, claim(299_999)), says, "{compression}");
            // Levels are before it, and are not compressed.
            let levels = [&[0; 5][..], &packed].concat();
            assert_eq!(check(&levels, Claim { levels: 5, ..claim(300_005) }), Ok(()));
            assert_eq!(check(&levels, Claim { levels: 5, ..claim(300_004) }), says, "{compression}");
            // Content that is not compressed, or broken, is not judged here.
            assert_eq!(check(&packed, Claim { is_plain: true, ..claim(1) }), Ok(()));
            assert_eq!(check(&packed, Claim { levels: 1 << 40, ..claim(1) }), Ok(()));
            assert_eq!(check(&packed[1..], claim(1)), Ok(()), "{compression}");
        }
        // A second stream after the first.
        assert!(check(gz, &[gzip(b"ab"), gzip(&bytes)].concat(), &claim(2)).is_err());
        assert!(check(Compression::SNAPPY, b"\xff\xff\xff\xff\x0f", &claim(1)).is_ok());
    }
}
