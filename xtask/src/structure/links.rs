//! The links between pages: each leads to a file of this repository, and where it names a heading, to that heading.

use crate::command::Call;
use crate::failure::{Failure, Result};
use crate::setup::cannot;
use pulldown_cmark::{Event, Parser, Tag, TagEnd};
use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Component, Path, PathBuf};

/// A page that is packed into the root of an archive, so that its links start there.
const PACKED: &str = "xtask/src/dist/README.md";
/// Has a link to every page beside it.
const INDEX: &str = "docs/README.md";

/// What other pages may name in a page, and what it names.
#[derive(Default)]
struct Page {
    headings: HashSet<String>,
    links: Vec<String>,
}

/// Checks the links of all pages, and that the index of the documentation leads to each of its pages.
pub fn check(root: &Path) -> Result<()> {
    let listed = ["ls-files", "--cached", "--others", "--exclude-standard", "--deduplicate", "-z", "*.md"];
    let names = Call::git(listed).within(root).read("cannot list the pages")?;
    let mut pages = HashMap::new();
    for name in names.split('\0').filter(|name| !name.is_empty()) {
        let path = root.join(name);
        // A page that was removed and not committed yet is listed too.
        if path.exists() {
            let text = fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
            pages.insert(PathBuf::from(name), Page::read(&text));
        }
    }
    let mut broken = broken_links(&pages, |path| root.join(path).exists());
    broken.extend(not_in_the_index(&pages));
    if broken.is_empty() {
        return Ok(());
    }
    broken.sort();
    Err(Failure::new("pages have broken links").why(broken.join("\n       ")))
}

impl Page {
    fn read(text: &str) -> Self {
        let mut page = Self::default();
        let mut heading: Option<String> = None;
        for event in Parser::new(text) {
            match event {
                Event::Start(Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. }) => {
                    page.links.push(dest_url.into_string());
                }
                Event::Start(Tag::Heading { .. }) => heading = Some(String::new()),
                Event::End(TagEnd::Heading(_)) => {
                    let name = anchor(&heading.take().unwrap_or_default());
                    // Further headings of the same name are counted.
                    let mut names = (1..).map(|count| format!("{name}-{count}"));
                    let mut unique = name.clone();
                    while !page.headings.insert(unique) {
                        unique = names.next().unwrap_or_default();
                    }
                }
                Event::Text(text) | Event::Code(text) => heading.iter_mut().for_each(|heading| heading.push_str(&text)),
                _ => {}
            }
        }
        page
    }
}

/// The name under which links find a heading, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn broken_links(pages: &HashMap<PathBuf, Page>, exists: impl Fn(&Path) -> bool) -> Vec<String> {
    let mut broken = Vec::new();
    for (name, page) in pages {
        for link in page.links.iter().filter(|link| !is_elsewhere(link)) {
            let (path, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = target(name, path);
            if !exists(&target) {
                broken.push(format!("{}: {link}: there is no such file", name.display()));
            } else if !heading.is_empty() && !pages.get(&target).is_some_and(|page| page.headings.contains(heading)) {
                broken.push(format!("{}: {link}: the page has no such heading", name.display()));
            }
        }
    }
    broken
}

/// Whether a link leads out of the repository: it begins with a scheme.
fn is_elsewhere(link: &str) -> bool {
    link.split_once(':').is_some_and(|(scheme, _)| scheme.chars().all(|c| c.is_ascii_alphabetic()))
}

/// The file that a path in the page `name` leads to, from the root.
fn target(name: &Path, path: &str) -> PathBuf {
    if path.is_empty() {
        return name.to_owned();
    }
    let folder = if name == Path::new(PACKED) { Path::new("") } else { name.parent().unwrap_or(Path::new("")) };
    let mut target = PathBuf::new();
    for component in folder.join(path).components() {
        match component {
            Component::ParentDir => _ = target.pop(),
            other => target.push(other),
        }
    }
    target
}

fn not_in_the_index(pages: &HashMap<PathBuf, Page>) -> Vec<String> {
    let index = Path::new(INDEX);
    let links = pages.get(index).map(|page| page.links.as_slice()).unwrap_or_default();
    let found: HashSet<PathBuf> = links.iter().map(|link| target(index, link)).collect();
    let folder = index.parent().unwrap_or(index);
    let missing = pages.keys().filter(|name| name.starts_with(folder) && *name != index && !found.contains(*name));
    missing.map(|name| format!("{INDEX}: has no link to {}", name.display())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(texts: &[(&str, &str)]) -> HashMap<PathBuf, Page> {
        texts.iter().map(|(name, text)| (PathBuf::from(name), Page::read(text))).collect()
    }

    #[test]
    fn links_lead_to_files_and_headings() {
        let pages = pages(&[
            ("README.md", "[a](docs/a.md#two-words) [b](docs/b.md) ![c](c.svg) [d](https://x.y/z#q) `[e](e.md)`"),
            (
                "docs/a.md",
                "# Two words!\n\n# *Two* `words`\n\n[a](#two-words-1) [b](#three) [c](../README.md#x)\n\n    # Code",
            ),
            (PACKED, "[a](docs/a.md)"),
        ]);
        let mut broken = broken_links(&pages, |path| pages.contains_key(path));
        broken.sort();
        assert_eq!(
            broken,
            [
                "README.md: c.svg: there is no such file",
                "README.md: docs/b.md: there is no such file",
                "docs/a.md: #three: the page has no such heading",
                "docs/a.md: ../README.md#x: the page has no such heading",
            ]
        );
    }

    #[test]
    fn the_index_leads_to_every_page() {
        let pages = pages(&[
            (INDEX, "[a](a.md) [b](languages/b.md) [r](../README.md)"),
            ("docs/a.md", ""),
            ("docs/languages/b.md", ""),
            ("docs/languages/c.md", "[a](../a.md)"),
            ("README.md", ""),
        ]);
        assert_eq!(not_in_the_index(&pages), ["docs/README.md: has no link to docs/languages/c.md"]);
    }
}
