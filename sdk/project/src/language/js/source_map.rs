//! The source map of a bundle. The build decodes it, so that a failed call only looks up a place.

use crate::error::Error;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The bundle's name in the places that StarlingMonkey reports.
const BUNDLE: &str = "build/js/bundle.js:";
/// The path of the SDK in a project's folder, where npm links to it.
const SDK: &str = "@vendor/gavel/";
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// The source of each place in the lines of a bundle.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct SourceMap {
    /// Files, by their paths from the project's folder.
    sources: Vec<String>,
    /// For each line of the bundle, three numbers for each place, one after another: the column where it begins, from
    /// 0, the index of its file, and its line there, from 1.
    lines: Vec<Vec<i64>>,
}

impl SourceMap {
    /// Reads the map that esbuild wrote into `build/js/`.
    pub(super) fn read(path: &Path) -> Result<Self, Error> {
        #[derive(Deserialize)]
        struct Written {
            sources: Vec<String>,
            mappings: String,
        }
        let text = fs::read(path).map_err(Error::file("read", path))?;
        let Written { sources, mappings } =
            serde_json::from_slice(&text).map_err(|error| Error::file("read", path)(error.into()))?;
        let from_folder = |source: String| source.trim_start_matches("../").to_owned();
        Ok(Self { sources: sources.into_iter().map(from_folder).collect(), lines: decoded(&mappings) })
    }

    /// The source file and line of a line of the bundle, from 1, and a column, from 1.
    fn place(&self, line: usize, column: i64) -> Option<String> {
        let places = self.lines.get(line.checked_sub(1)?)?;
        let (places, _) = places.as_chunks::<3>();
        let [_, source, row] = places.iter().take_while(|[start, ..]| *start < column).last()?;
        Some(format!("{}:{row}", self.sources.get(usize::try_from(*source).ok()?)?))
    }

    /// A message with places in the author's files instead of the bundle, and without frames of the SDK.
    pub(super) fn translate(&self, text: &str) -> String {
        let mut parts = text.split(BUNDLE);
        let mut translated = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let end = part.find(|c: char| !c.is_ascii_digit() && c != ':').unwrap_or(part.len());
            let (numbers, rest) = part.split_at(end);
            let place = numbers
                .split_once(':')
                .and_then(|(line, column)| self.place(line.parse().ok()?, column.trim_end_matches(':').parse().ok()?));
            match place {
                Some(place) => translated.push_str(&place),
                None => translated.extend([BUNDLE, numbers]),
            }
            translated.push_str(rest);
        }
        let own = translated.split_inclusive('\n').filter(|line| !line.contains(SDK));
        own.collect()
    }
}

/// The places of each line. A segment has differences from the previous one: of the column, which starts again from 0
/// in each line, of the source, of the row, and of two others that are not needed.
fn decoded(mappings: &str) -> Vec<Vec<i64>> {
    let (mut source, mut row) = (0, 0);
    let mut line = |text: &str| {
        let (mut column, mut places, mut last) = (0, Vec::new(), None);
        for segment in text.split(',') {
            let [forward, to_source, to_row] = numbers(segment);
            column += forward;
            source += to_source;
            row += to_row;
            if !segment.is_empty() && last.replace((source, row)) != Some((source, row)) {
                places.extend([column, source, row + 1]);
            }
        }
        places
    };
    mappings.split(';').map(&mut line).collect()
}

/// The first numbers of a segment. Each has groups of five bits, the lowest first, with the sign in the lowest bit.
/// Missing numbers are 0.
fn numbers(segment: &str) -> [i64; 3] {
    let mut numbers = [0; 3];
    let (mut at, mut number, mut shift) = (0, 0_i64, 0);
    for digit in segment.bytes().filter_map(|byte| DIGITS.iter().position(|digit| *digit == byte)) {
        number |= ((digit & 31) as i64) << shift;
        if digit & 32 != 0 && shift < 55 {
            shift += 5;
            continue;
        }
        if let Some(place) = numbers.get_mut(at) {
            *place = if number & 1 == 0 { number >> 1 } else { -(number >> 1) };
        }
        (at, number, shift) = (at + 1, 0, 0);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The map that esbuild writes for two modules: `b.js` with one line, and `main.js` with `c`, which calls it.
    fn map() -> SourceMap {
        let written = r#"{"sources": ["../../vendor/gavel/b.js", "../../main.js"], "names": [],
            "mappings": ";AAAO,IAAM,IAAI,MAAM;;;ACChB,IAAM,IAAI,MAAM;AACrB,SAAO,EAAE;AAAG;"}"#;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bundle.js.map");
        fs::write(&path, written).unwrap();
        SourceMap::read(&path).unwrap()
    }

    #[test]
    fn each_line_of_a_bundle_has_its_places() {
        let expected: [&[i64]; 8] = [&[], &[0, 0, 1], &[], &[], &[0, 1, 2], &[0, 1, 3], &[0, 1, 3], &[]];
        assert_eq!(map().lines, expected);
        assert_eq!(map().place(5, 1).as_deref(), Some("main.js:2"));
        for none in [(3, 1), (99, 1), (0, 1), (2, 0)] {
            assert_eq!(map().place(none.0, none.1), None);
        }
        assert_eq!(numbers("gqBpC"), [672, -36, 0]);
    }

    #[test]
    fn the_places_of_a_message_are_the_authors() {
        let said = "build/js/bundle.js:6:41 TypeError: no build/js/bundle.js\n  add@build/js/bundle.js:2:41\n  \
                    @build/js/bundle.js:5:7\n  @build/js/bundle.js:77:7\n";
        let expected = "main.js:3 TypeError: no build/js/bundle.js\n  @main.js:2\n  @build/js/bundle.js:77:7\n";
        assert_eq!(map().translate(said), expected);
    }
}
