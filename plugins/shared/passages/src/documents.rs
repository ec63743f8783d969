//! Reads documents: text, Markdown, and lines of JSON with a text each.

use serde::Deserialize;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};

/// A document with its name for the policy.
#[derive(Debug, PartialEq)]
pub struct Document {
    /// The name.
    pub name: String,
    /// The title, where it has one.
    pub title: Option<String>,
    /// The text.
    pub text: String,
}

/// A line of a `.jsonl` file. Other fields are not read.
#[derive(Deserialize)]
struct Line {
    id: Option<Id>,
    title: Option<String>,
    text: String,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Number(i64),
    Text(String),
}

/// The documents in `folder` and the folders below it, in the order of their names. Hidden files and folders are left
/// out.
///
/// # Errors
/// A file that cannot be read, by its path as the plugin sees it, or the lack of any document.
pub fn read(folder: &Path) -> Result<Vec<Document>, String> {
    fs::read_dir(folder).map_err(|error| {
        let grant = format!("grant the tool a folder with read = [\"FOLDER:{}\"]", folder.display());
        format!("cannot read `{}`: {error}; {grant}", folder.display())
    })?;
    let mut documents = Vec::new();
    for path in files(folder)? {
        let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
        match path.extension().map(|extension| extension.to_ascii_lowercase()) {
            Some(kind) if kind == "txt" || kind == "md" => {
                let document = Document { name, title: None, text: text(&path)? };
                documents.extend(Some(document).filter(Document::has_text));
            }
            Some(kind) if kind == "jsonl" => documents.append(&mut lines(&path, &name)?),
            _ => {}
        }
    }
    if documents.is_empty() {
        return Err(format!("there is no document in `{}`: no .txt, .md or .jsonl file with text", folder.display()));
    }
    Ok(documents)
}

impl Document {
    fn has_text(&self) -> bool {
        !self.text.trim().is_empty()
    }
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).map_err(|error| cannot(&folder, &error))? {
            let entry = entry.map_err(|error| cannot(&folder, &error))?;
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            // A link is not followed to a folder, since the folder could contain the link.
            match entry.file_type().map_err(|error| cannot(&entry.path(), &error))?.is_dir() {
                true => folders.push(entry.path()),
                false => files.push(entry.path()),
            }
        }
    }
    files.sort();
    Ok(files)
}

fn text(path: &Path) -> Result<String, String> {
    let bytes = fs::read(path).map_err(|error| cannot(path, &error))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        format!(
            "`{}` is not UTF-8 text: byte {} does not belong there",
            path.display(),
            error.utf8_error().valid_up_to()
        )
    })?;
    Ok(text.replace("\r\n", "\n"))
}

fn lines(path: &Path, name: &str) -> Result<Vec<Document>, String> {
    let text = text(path)?;
    let written = text.lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    let documents = written.map(|(line, number)| {
        let Line { id, title, text } =
            serde_json::from_str(line).map_err(|error| format!("`{}`, line {number}: {error}", path.display()))?;
        let name = match id {
            Some(Id::Number(id)) => id.to_string(),
            Some(Id::Text(id)) => id,
            None => format!("{name}, line {number}"),
        };
        Ok(Document { name, title, text })
    });
    let documents = documents.collect::<Result<Vec<Document>, String>>()?;
    Ok(documents.into_iter().filter(Document::has_text).collect())
}

fn cannot(path: &Path, error: &impl Display) -> String {
    format!("cannot read `{}`: {error}", path.display())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(files: &[(&str, &[u8])]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in files {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, bytes).unwrap();
        }
        folder
    }

    #[test]
    fn documents_are_named_by_their_files_and_ids() {
        let lines = br#"{"id": 7, "title": "Mars", "text": "Red."}

{"text": "Blue.", "source": "x"}
{"id": "b", "text": " "}
"#;
        let folder = folder(&[
            ("b/deep.MD", b"# Deep\r\nText."),
            ("a.txt", b"First."),
            ("c.jsonl", lines),
            ("blank.txt", b" \n"),
            ("other.csv", b"\xff"),
            (".git/head.txt", b"hidden"),
        ]);
        let found: Vec<_> = read(folder.path())
            .unwrap()
            .into_iter()
            .map(|document| (document.name, document.title.unwrap_or_default(), document.text))
            .collect();
        let expected = [
            ("a.txt", "", "First."),
            ("b/deep.MD", "", "# Deep\nText."),
            ("7", "Mars", "Red."),
            ("c.jsonl, line 3", "", "Blue."),
        ];
        assert_eq!(found, expected.map(|(name, title, text)| (name.into(), title.into(), text.into())));
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let error = |files: &[(&str, &[u8])]| {
            let folder = folder(files);
            let error = read(folder.path()).unwrap_err();
            error.replace(&folder.path().display().to_string(), "F")
        };
        assert_eq!(error(&[]), "there is no document in `F`: no .txt, .md or .jsonl file with text");
        assert_eq!(error(&[("a.txt", b"ab\xff")]), "`F/a.txt` is not UTF-8 text: byte 2 does not belong there");
        let without_text = error(&[("a.jsonl", b"{\"text\": \"x\"}\n{\"id\": \"y\"}")]);
        assert!(without_text.starts_with("`F/a.jsonl`, line 2: missing field `text`"), "{without_text}");
        assert!(read(Path::new("/not/here")).unwrap_err().starts_with("cannot read `/not/here`: "));
    }

    #[cfg(unix)]
    #[test]
    fn a_folder_within_itself_is_read_once() {
        let folder = folder(&[("a.txt", b"Text.")]);
        std::os::unix::fs::symlink(folder.path(), folder.path().join("again")).unwrap();
        assert_eq!(read(folder.path()).unwrap().len(), 1);
    }
}
