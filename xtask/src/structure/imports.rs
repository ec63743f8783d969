//! What the files of a crate import from each other.

use super::tokens::{Token, tokens};
use crate::failure::Result;
use crate::setup::cannot;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

/// For each file of a crate, the files that it imports and the names that it
/// takes from each. Paths look like `lanes.rs` and `grant/http/mod.rs`.
pub type Imports = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// A module's path from the root of its crate: `["grant", "http"]`.
type Module = Vec<String>;

/// Reads what the files in `src`, the folder of a crate's code, import from
/// each other. A name that a module only re-exports (`pub use`) is imported
/// from where it is defined. Only paths are read; code that a macro generates
/// is not seen.
pub fn read(src: &Path) -> Result<Imports> {
    let mut files = BTreeMap::new();
    collect(src, "", &mut files)?;
    Ok(Crate::new(&files).imports())
}

/// The code of all files in a folder, by their paths.
fn collect(folder: &Path, prefix: &str, files: &mut BTreeMap<String, String>) -> Result<()> {
    let entries = fs::read_dir(folder).map_err(|error| cannot("read", folder, &error))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            collect(&path, &format!("{prefix}{name}/"), files)?;
        } else if name.ends_with(".rs") {
            let code = fs::read_to_string(&path).map_err(|error| cannot("read", &path, &error))?;
            files.insert(format!("{prefix}{name}"), code);
        }
    }
    Ok(())
}

fn module_of(file: &str) -> Module {
    let mut module: Module = file.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
    if module.last().is_some_and(|last| last == "mod")
        || matches!(&module[..], [root] if root == "lib" || root == "main")
    {
        module.pop();
    }
    module
}

/// The modules of a crate.
struct Crate {
    files: BTreeMap<Module, Source>,
}

/// The parts of a file that are read.
struct Source {
    file: String,
    paths: Vec<Named>,
}

/// A path in code.
struct Named {
    /// The module that it is in, which may be one within the file.
    module: Module,
    path: Vec<String>,
    is_use: bool,
    /// The name under which it is re-exported, if it is.
    passed_on: Option<String>,
}

impl Crate {
    /// Reads a crate from the code of its files, by their paths.
    fn new(files: &BTreeMap<String, String>) -> Self {
        let source = |(file, code): (&String, &String)| {
            let module = module_of(file);
            (module.clone(), Source { file: file.clone(), paths: paths(module, &tokens(code)) })
        };
        Self { files: files.iter().map(source).collect() }
    }

    fn imports(&self) -> Imports {
        self.files.values().map(|source| (source.file.clone(), self.imports_of(source))).collect()
    }

    fn imports_of(&self, source: &Source) -> BTreeMap<String, BTreeSet<String>> {
        let mut imports: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
        // A name that is re-exported and also used here is an import like any
        // other.
        let used = |name: &String| source.paths.iter().any(|named| !named.is_use && named.path[0] == *name);
        let is_import = |named: &&Named| match &named.passed_on {
            Some(name) => used(name),
            None => named.is_use || named.path.len() > 1,
        };
        for Named { module, path, .. } in source.paths.iter().filter(is_import) {
            if let Some((found, name)) = self.resolve(module, path)
                && found != source.file
            {
                imports.entry(found.to_owned()).or_default().insert(name);
            }
        }
        imports
    }

    /// The file that a path in `module` leads to, and the name that is taken
    /// from it. `None` if it leads out of the crate or is not a path.
    fn resolve(&self, module: &[String], path: &[String]) -> Option<(&str, String)> {
        let mut found = module.to_vec();
        let mut rest = path;
        match path.first()?.as_str() {
            "crate" => {
                found.clear();
                rest = &rest[1..];
            }
            "self" => rest = &rest[1..],
            "super" => {
                while rest.first().is_some_and(|word| word == "super") {
                    found.pop();
                    rest = &rest[1..];
                }
            }
            child if self.files.contains_key(&[&found[..], &[child.to_owned()]].concat()) => {}
            _ => return None,
        }
        let mut name = found.last().cloned().unwrap_or_else(|| "crate".to_owned());
        while let Some((word, after)) = rest.split_first() {
            name.clone_from(word);
            found.push(word.clone());
            if !self.files.contains_key(&found) {
                found.pop();
                if let Some(passed) = self.passed_on(&found, word) {
                    return self.resolve(&found, &[passed, after].concat());
                }
                break;
            }
            rest = after;
        }
        // A module within a file belongs to it.
        while !self.files.contains_key(&found) {
            found.pop()?;
        }
        Some((&self.files.get(&found)?.file, name))
    }

    /// The path from which `module` re-exports a name.
    fn passed_on(&self, module: &Module, name: &str) -> Option<&[String]> {
        let paths = &self.files.get(module)?.paths;
        let found = paths.iter().find(|path| path.passed_on.as_deref() == Some(name) && path.module == *module)?;
        Some(&found.path)
    }
}

/// All paths in the code of a file.
fn paths(file: Module, tokens: &[Token]) -> Vec<Named> {
    let mut paths = Vec::new();
    let (mut module, mut depth, mut within) = (file, 0, Vec::new());
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            Token::Word(word) if word == "use" => {
                let public = at > 0 && (tokens[at - 1].word() == Some("pub") || tokens[at - 1].is(')'));
                let mut found = Vec::new();
                at += 1 + tree(&tokens[at + 1..], &[], &mut found);
                paths.extend(found.into_iter().map(|(path, name)| Named {
                    module: module.clone(),
                    path,
                    is_use: true,
                    passed_on: public.then_some(name),
                }));
                continue;
            }
            Token::Word(word) if word == "mod" => {
                at += 1;
                if tokens.get(at + 1).is_some_and(|token| token.is('{')) {
                    module.extend(tokens[at].word().map(str::to_owned));
                    within.push(depth);
                }
            }
            Token::Word(_) => {
                let path = path(&tokens[at..]);
                at += 2 * path.len() - 1;
                paths.push(Named { module: module.clone(), path, is_use: false, passed_on: None });
                continue;
            }
            Token::Sign('{') => depth += 1,
            Token::Sign('}') => {
                depth -= 1;
                if within.last() == Some(&depth) {
                    within.pop();
                    module.pop();
                }
            }
            // The next word continues a path that begins elsewhere.
            Token::PathSeparator => at += 1,
            Token::Sign(_) => {}
        }
        at += 1;
    }
    paths
}

/// The words of the path that `tokens` begin with.
fn path(tokens: &[Token]) -> Vec<String> {
    let mut words: Vec<String> = tokens[0].word().map(str::to_owned).into_iter().collect();
    for pair in tokens[1..].chunks_exact(2) {
        match pair {
            [Token::PathSeparator, Token::Word(word)] => words.push(word.clone()),
            _ => break,
        }
    }
    words
}

/// Reads one tree of a `use`: its paths, each with the name that it gets.
/// Gives its length in tokens.
fn tree(tokens: &[Token], prefix: &[String], paths: &mut Vec<(Vec<String>, String)>) -> usize {
    let (mut path, mut name) = (prefix.to_vec(), None);
    let mut at = 0;
    while at < tokens.len() {
        match &tokens[at] {
            Token::Word(word) if word == "as" => {
                at += 1;
                name = tokens.get(at).and_then(Token::word);
            }
            Token::Word(word) if word == "self" && !path.is_empty() => {}
            Token::Word(word) => path.push(word.clone()),
            Token::Sign('{') => {
                at += 1;
                while at < tokens.len() && !tokens[at].is('}') {
                    at += tree(&tokens[at..], &path, paths);
                    if tokens.get(at).is_some_and(|token| token.is(',')) {
                        at += 1;
                    }
                }
                return at + 1;
            }
            Token::PathSeparator | Token::Sign('*') => {}
            Token::Sign(_) => break,
        }
        at += 1;
    }
    let name = name.or(path.last().map(String::as_str)).unwrap_or_default().to_owned();
    paths.push((path, name));
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The imports of `file`, with this code, beside other files; `b`
    /// re-exports names of `b/c.rs`.
    fn imports(file: &str, code: &str) -> Vec<String> {
        let others =
            [("lib.rs", ""), ("a.rs", ""), ("b/mod.rs", "pub use c::{F, G as H};"), ("b/c.rs", ""), ("b/d.rs", "")];
        let mut files: BTreeMap<String, String> =
            others.iter().map(|(file, code)| ((*file).to_owned(), (*code).to_owned())).collect();
        files.insert(file.to_owned(), code.to_owned());
        let imports = Crate::new(&files).imports().remove(file).unwrap();
        let line = |(file, names): (String, BTreeSet<String>)| {
            format!("{file}: {}", names.into_iter().collect::<Vec<_>>().join(" "))
        };
        imports.into_iter().map(line).collect()
    }

    #[test]
    fn a_use_is_of_the_files_that_its_paths_name() {
        assert_eq!(
            imports("a.rs", "use crate::b::{self, X, c::{Y as Z, w}, d};"),
            ["b/c.rs: Y w", "b/d.rs: d", "b/mod.rs: X b"]
        );
        assert_eq!(imports("b/c.rs", "use super::d::{A, B};\nuse super::E;"), ["b/d.rs: A B", "b/mod.rs: E"]);
        assert_eq!(imports("b/mod.rs", "mod c;\nuse c::A;\nuse std::fmt;\nuse d as e;"), ["b/c.rs: A", "b/d.rs: d"]);
        assert_eq!(imports("a.rs", "use super::*;"), ["lib.rs: crate"]);
    }

    #[test]
    fn what_is_passed_on_is_imported_from_where_it_is_defined() {
        assert_eq!(imports("a.rs", "use crate::b::{F, H, I};"), ["b/c.rs: F G", "b/mod.rs: I"]);
        assert_eq!(imports("b/mod.rs", "pub use c::F; pub(crate) use d::{G, H as I}; fn f() -> I {}"), ["b/d.rs: H"]);
        assert_eq!(imports("b/mod.rs", "pub use other::F; fn f() { F::new() }"), [""; 0]);
    }

    #[test]
    fn a_path_in_code_is_an_import() {
        assert_eq!(imports("a.rs", "fn f() -> crate::b::X { crate::b::c::g(1) }"), ["b/c.rs: g", "b/mod.rs: X"]);
        assert_eq!(imports("b/mod.rs", "fn f() { c::g(super::a::h(), other::c::i()) }"), ["a.rs: h", "b/c.rs: g"]);
        assert_eq!(imports("a.rs", "pub(crate) fn f(a: Self::T) { self.b::<X>(); }"), [""; 0]);
        assert_eq!(imports("a.rs", "bindgen!({ with: { \"x\": crate::b::X } });"), ["b/mod.rs: X"]);
    }

    #[test]
    fn a_module_within_a_file_is_of_that_file() {
        let code = "mod inner { use super::A; use super::super::b::B; } use super::a::C;";
        assert_eq!(imports("a.rs", code), ["b/mod.rs: B"]);
        assert_eq!(imports("b/c.rs", "use crate::a::inner::D;"), ["a.rs: inner"]);
    }
}
