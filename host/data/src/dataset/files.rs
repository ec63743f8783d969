//! The files of a dataset: one file, the files of a folder, or the files that a pattern matches.

use super::pattern::matching;
use super::{Row, RowError, RowReader};
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

/// A row, and the file that it is in.
#[derive(Debug, Clone, PartialEq)]
pub struct DatasetRow {
    /// The file.
    pub path: Arc<Path>,
    /// The row; its position counts over all files.
    pub row: Row,
}

/// Reads the rows of a dataset, one file after another. After a file that breaks off, the next call continues with the
/// next file.
pub struct DatasetReader {
    files: std::vec::IntoIter<PathBuf>,
    reader: Option<OpenFile>,
    /// Rows of the earlier files.
    before: usize,
    refuses_changes: bool,
}

/// The file that is read.
struct OpenFile {
    path: Arc<Path>,
    reader: RowReader,
    /// What it was when it was opened; absent for standard input.
    stamp: Option<Stamp>,
}

/// What differs once a file was written again.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    file: (u64, u64),
    length: u64,
    modified: Option<SystemTime>,
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let file = fs::metadata(path).ok()?;
        Some(Self { file: (file.dev(), file.ino()), length: file.len(), modified: file.modified().ok() })
    }
}

impl OpenFile {
    fn open(path: &Path) -> Result<Self, RowError> {
        let stamp = Stamp::of(path);
        Ok(Self { path: path.into(), reader: RowReader::open(path)?, stamp })
    }

    fn is_changed(&self) -> bool {
        self.stamp.is_some() && Stamp::of(&self.path) != self.stamp
    }
}

impl DatasetReader {
    /// Opens `path`: a file whose name ends in `.jsonl` or `.parquet`, a folder with such files, or a pattern. A pattern
    /// has `*`, `?`, `[…]`, or `**` for any folders.
    ///
    /// # Errors
    /// There is no such file.
    pub fn open(path: &Path) -> Result<Self, RowError> {
        let mut files = files(path)?.into_iter();
        let reader = files.next().map(|file| OpenFile::open(&file)).transpose()?;
        Ok(Self { files, reader, before: 0, refuses_changes: false })
    }

    /// Reads JSON Lines from standard input.
    ///
    /// # Errors
    /// There is no standard input.
    pub fn stdin() -> Result<Self, RowError> {
        let path = Path::new("stdin");
        let reader = RowReader::stdin(path)?;
        let reader = Some(OpenFile { path: path.into(), reader, stamp: None });
        Ok(Self { files: Vec::new().into_iter(), reader, before: 0, refuses_changes: false })
    }

    /// The same reader, for which a file that changes while it is read is an error at its end.
    pub fn refusing_changes(self) -> Self {
        Self { refuses_changes: true, ..self }
    }
}

impl Iterator for DatasetReader {
    type Item = Result<DatasetRow, RowError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let open = self.reader.as_mut()?;
            if let Some(row) = open.reader.next() {
                let (path, before) = (open.path.clone(), self.before);
                return Some(row.map(|row| DatasetRow { path, row: Row { position: before + row.position, ..row } }));
            }
            self.before += open.reader.rows_read();
            let changed =
                (self.refuses_changes && open.is_changed()).then(|| RowError::Changed(open.path.to_path_buf()));
            let next = self.files.next().map(|file| OpenFile::open(&file)).transpose();
            let (reader, error) = match next {
                Ok(reader) => (reader, changed),
                Err(error) => (None, Some(changed.unwrap_or(error))),
            };
            self.reader = reader;
            if let Some(error) = error {
                return Some(Err(error));
            }
        }
    }
}

/// The files that `path` stands for, at least one, sorted by name.
fn files(path: &Path) -> Result<Vec<PathBuf>, RowError> {
    let open = |source| RowError::Open { path: path.to_owned(), source };
    let is_pattern = path.to_str().is_some_and(|text| text.contains(['*', '?', '[']));
    let mut files = if path.is_dir() {
        let entries = std::fs::read_dir(path).map_err(open)?;
        let files = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>, _>>().map_err(open)?;
        files.into_iter().filter(|file| is_dataset(file) && !is_hidden(file) && file.is_file()).collect()
    } else if is_pattern && !path.exists() {
        let mut found = matching(path)?;
        found.retain(|file| file.is_file());
        found
    } else {
        vec![path.to_owned()]
    };
    if files.is_empty() {
        return Err(RowError::NoFiles(path.to_owned()));
    }
    files.sort();
    Ok(files)
}

fn is_dataset(file: &Path) -> bool {
    file.extension().is_some_and(|kind| kind == "jsonl" || kind == "parquet")
}

fn is_hidden(file: &Path) -> bool {
    file.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"."))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    /// The rows that `name` stands for in a folder with some files.
    fn read(name: &str) -> Result<Vec<(String, usize, String)>, RowError> {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        file("data/b.jsonl", "{\"n\":2}\n\n{\"n\":3}\n");
        file("data/a.jsonl", "{\"n\":0}\n{\"n\":1}\n");
        file("data/README.md", "# Numbers");
        file("data/.hidden.jsonl", "{\"n\":9}");
        file("data/more/c.jsonl", "{\"n\":4}\n");
        file("odd[1].jsonl", "{\"n\":5}\n");
        std::fs::create_dir(folder.path().join("empty")).unwrap();
        let rows = DatasetReader::open(&folder.path().join(name))?;
        rows.map(|row| {
            let DatasetRow { path, row } = row?;
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            Ok((name, row.position, row.place))
        })
        .collect()
    }

    fn named(rows: &[(String, usize, String)]) -> Vec<(&str, usize, &str)> {
        rows.iter().map(|(name, position, place)| (name.as_str(), *position, place.as_str())).collect()
    }

    #[test]
    fn a_folder_is_its_files_in_order() {
        let expected =
            [("a.jsonl", 0, "line 1"), ("a.jsonl", 1, "line 2"), ("b.jsonl", 2, "line 1"), ("b.jsonl", 3, "line 3")];
        assert_eq!(named(&read("data").unwrap()), expected);
        assert_eq!(named(&read("data/*.jsonl").unwrap()), expected);
        assert_eq!(named(&read("data/[ab].jsonl").unwrap()), expected);
    }

    #[test]
    fn a_pattern_may_go_through_folders_and_a_name_may_look_like_one() {
        assert_eq!(named(&read("**/c.*").unwrap()), [("c.jsonl", 0, "line 1")]);
        assert_eq!(named(&read("data/more/c.jsonl").unwrap()), [("c.jsonl", 0, "line 1")]);
        assert_eq!(named(&read("odd[1].jsonl").unwrap()), [("odd[1].jsonl", 0, "line 1")]);
    }

    #[test]
    fn folders_in_themselves_are_searched_once() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("d/more/.hidden")).unwrap();
        for name in ["d/x.jsonl", "d/more/y.jsonl", "d/more/.z.jsonl", "d/more/.hidden/z.jsonl"] {
            std::fs::write(path(name), "").unwrap();
        }
        // These patterns match more than 2^30 paths.
        ["d/a", "d/b", "d/more/c"].iter().for_each(|link| symlink(path("d"), path(link)).unwrap());
        let found = |pattern: &str| {
            let found = files(&path(pattern)).unwrap();
            found.into_iter().map(|file| file.strip_prefix(folder.path()).unwrap().to_owned()).collect::<Vec<_>>()
        };
        let each = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        assert_eq!(found("d/**/*.jsonl"), each(&["d/more/y.jsonl", "d/x.jsonl"]));
        let often = |times: usize, end: &str| format!("d/{}{end}", "a/".repeat(times));
        let expected = [often(30, "x.jsonl"), often(29, "b/x.jsonl"), often(28, "more/c/x.jsonl")];
        assert_eq!(found(&format!("d/{}x.jsonl", "*/".repeat(30))), each(&expected.each_ref().map(String::as_str)));
        assert_eq!(found("d/*/y.jsonl"), each(&["d/more/y.jsonl"]));
        assert_eq!(found("d/more/.?.jsonl"), each(&["d/more/.z.jsonl"]));
        assert_eq!(found("d/**/.hidden/*"), each(&["d/more/.hidden/z.jsonl"]));
        assert_eq!(found("d/more/../[x-y].jsonl"), each(&["d/more/../x.jsonl"]));
        assert_eq!(found("**/**/y.jsonl"), each(&["d/more/y.jsonl"]));
    }

    #[test]
    fn a_dataset_without_files_is_an_error() {
        let error = |name: &str| read(name).unwrap_err().to_string();
        assert!(error("data/none*.jsonl").contains("none*.jsonl has no file"), "{}", error("data/none*.jsonl"));
        assert!(error("empty").contains("empty has no file"), "{}", error("empty"));
        assert!(error("none.jsonl").contains("cannot open dataset"));
        assert!(error("data/R*").contains("must end in .jsonl or .parquet"));
        assert!(error("data/a***.jsonl").contains("is not a pattern"), "{}", error("data/a***.jsonl"));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named_and_the_others_before_it_are_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.jsonl"), "{\"n\":1}\n[1]\n").unwrap();
        std::fs::write(folder.path().join("b.parquet"), "nonsense").unwrap();
        let rows: Vec<_> = DatasetReader::open(folder.path()).unwrap().collect();
        assert_eq!(rows.len(), 3);
        assert!(rows[1].as_ref().unwrap_err().to_string().contains("a.jsonl, line 2: not a JSON object"));
        assert!(rows[2].as_ref().unwrap_err().to_string().contains("b.parquet, footer: not a readable Parquet file"));
    }

    #[test]
    fn a_file_that_changes_while_it_is_read_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let (first, second) = (folder.path().join("a.jsonl"), folder.path().join("b.jsonl"));
        let write = |path: &Path, text: &str| std::fs::write(path, text).unwrap();
        let read = |change: &dyn Fn(), refuses: bool| {
            write(&first, "{\"n\":0}\n{\"n\":1}\n");
            write(&second, "{\"n\":2}\n");
            let mut rows = DatasetReader::open(folder.path()).unwrap();
            if refuses {
                rows = rows.refusing_changes();
            }
            assert!(rows.next().unwrap().is_ok());
            change();
            rows.map(|row| row.map(|row| row.row.position).map_err(|error| error.to_string())).collect::<Vec<_>>()
        };
        assert_eq!(read(&|| (), true), [Ok(1), Ok(2)]);
        let grows = || write(&first, "{\"n\":0}\n{\"n\":1}\n\n");
        let changed = format!(
            "dataset {} changed while it was read\nhint: start again once nothing writes to it",
            first.display()
        );
        assert_eq!(read(&grows, true), [Ok(1), Err(changed.clone()), Ok(2)]);
        assert_eq!(read(&grows, false), [Ok(1), Ok(2)]);
        // Another file in its place.
        let replace = || {
            let other = folder.path().join("other");
            write(&other, "{\"n\":0}\n{\"n\":1}\n");
            std::fs::rename(other, &first).unwrap();
        };
        assert_eq!(read(&replace, true), [Ok(1), Err(changed), Ok(2)]);
    }
}
