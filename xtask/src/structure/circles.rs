//! Circles of files. Files that import each other, directly or through others,
//! can only be understood and changed together.

use super::crates_in;
use super::imports::{self, Imports};
use crate::failure::{Failure, Result};
use std::collections::BTreeSet;
use std::path::Path;

/// Refuses circles of files in the crates of `host/`.
pub fn check(root: &Path) -> Result<()> {
    let mut found = Vec::new();
    for path in crates_in(&root.join("host"))? {
        let folder = format!("host/{}", path.file_name().unwrap_or_default().to_string_lossy());
        let imports = imports::read(&path.join("src"))?;
        found.extend(circles(&imports).iter().map(|circle| shown(&folder, circle, &imports)));
    }
    if found.is_empty() {
        return Ok(());
    }
    Err(Failure::new("files import each other in a circle")
        .why(found.join("\n  "))
        .hint("move what both sides need to a separate file"))
}

/// The largest sets of files in which each file imports every other, directly
/// or through others.
fn circles(imports: &Imports) -> Vec<BTreeSet<&str>> {
    let mut circles: Vec<BTreeSet<&str>> = Vec::new();
    for file in imports.keys() {
        if circles.iter().any(|circle| circle.contains(file.as_str())) {
            continue;
        }
        let circle: BTreeSet<&str> = reached(file, imports)
            .into_iter()
            .filter(|other| reached(other, imports).contains(file.as_str()))
            .collect();
        if !circle.is_empty() {
            circles.push(circle);
        }
    }
    circles
}

/// The files that `file` imports, directly or through others; `file` itself
/// only if it is in a circle.
fn reached<'a>(file: &'a str, imports: &'a Imports) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = vec![file];
    while let Some(next) = open.pop() {
        let imported = imports.get(next).into_iter().flatten().map(|(file, _)| file.as_str());
        open.extend(imported.filter(|file| reached.insert(*file)));
    }
    reached
}

/// A circle with the imported names that close it, in words.
fn shown(folder: &str, circle: &BTreeSet<&str>, imports: &Imports) -> String {
    let mut text = format!("{folder}/src: {}", circle.iter().copied().collect::<Vec<_>>().join(", "));
    for file in circle {
        for (other, names) in imports.get(*file).into_iter().flatten() {
            if circle.contains(other.as_str()) {
                let names: Vec<&str> = names.iter().map(String::as_str).collect();
                text.push_str(&format!("\n    {file} -> {other}: {}", names.join(", ")));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn imports(lines: &[(&str, &str, &str)]) -> Imports {
        let mut imports = Imports::new();
        for (file, other, name) in lines {
            imports.entry((*other).to_owned()).or_default();
            let from = imports.entry((*file).to_owned()).or_default().entry((*other).to_owned()).or_default();
            from.insert((*name).to_owned());
        }
        imports
    }

    #[test]
    fn a_circle_is_what_imports_each_other() {
        let one_way = imports(&[("a", "b", "X"), ("b", "c", "Y"), ("a", "c", "Y")]);
        assert!(circles(&one_way).is_empty());
        let two = imports(&[
            ("a", "b", "X"),
            ("b", "c", "Y"),
            ("c", "a", "Z"),
            ("c", "d", "D"),
            ("d", "e", "E"),
            ("e", "d", "D"),
        ]);
        assert_eq!(circles(&two), [BTreeSet::from(["a", "b", "c"]), BTreeSet::from(["d", "e"])]);
    }

    #[test]
    fn a_circle_is_shown_with_what_ties_it() {
        let all =
            imports(&[("a.rs", "b.rs", "X"), ("a.rs", "b.rs", "W"), ("b.rs", "a.rs", "Y"), ("b.rs", "c.rs", "Z")]);
        let found = circles(&all);
        let expected = "host/x/src: a.rs, b.rs\n    a.rs -> b.rs: W, X\n    b.rs -> a.rs: Y";
        assert_eq!(shown("host/x", &found[0], &all), expected);
    }
}
