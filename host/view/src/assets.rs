//! The files of the page, embedded in the program.

/// A file of the page.
pub(crate) struct Asset {
    pub(crate) name: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) bytes: &'static [u8],
}

macro_rules! assets {
    ($($kind:expr, $name:literal;)*) => {
        &[$(Asset { name: $name, kind: $kind, bytes: include_bytes!(concat!("../web/", $name)) }),*]
    };
}

const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";

/// The page itself.
pub(crate) const PAGE: &str = include_str!("../web/index.html");

/// The other files. The modules are in an order in which each imports only those before it.
pub(crate) const ASSETS: &[Asset] = assets![
    STYLE, "style.css";
    STYLE, "vendor/uPlot.min.css";
    SCRIPT, "vendor/uPlot.iife.min.js";
    SCRIPT, "shown.js";
    SCRIPT, "dom.js";
    SCRIPT, "state.js";
    SCRIPT, "source.js";
    SCRIPT, "files.js";
    SCRIPT, "chart.js";
    SCRIPT, "curves.js";
    SCRIPT, "samples.js";
    SCRIPT, "tokens.js";
    SCRIPT, "branches.js";
    SCRIPT, "sample.js";
    SCRIPT, "rewards.js";
    SCRIPT, "suspects.js";
    SCRIPT, "steps.js";
    SCRIPT, "statistics.js";
    SCRIPT, "evaluation.js";
    SCRIPT, "run.js";
    SCRIPT, "app.js";
];

/// The modules in one classic script, as browsers load it from a disk too, where they load no modules. Each module is
/// written so that this is its text without `import` lines and `export` before its names.
pub(crate) fn bundle() -> String {
    let mut all = String::from("\"use strict\";\n(() => {\n");
    let modules = ASSETS.iter().filter(|asset| asset.kind == SCRIPT && !asset.name.contains('/'));
    for line in modules.flat_map(|asset| std::str::from_utf8(asset.bytes).unwrap_or_default().lines()) {
        if !line.starts_with("import ") {
            all.push_str(line.strip_prefix("export ").unwrap_or(line));
            all.push('\n');
        }
    }
    all + "})();\n"
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn modules_share_no_names_and_import_what_is_before_them() {
        let (mut names, mut before) = (HashSet::new(), HashSet::new());
        for asset in ASSETS.iter().filter(|asset| asset.kind == SCRIPT && !asset.name.contains('/')) {
            for line in std::str::from_utf8(asset.bytes).unwrap().lines() {
                if let Some(import) = line.strip_prefix("import ") {
                    let from = import.split('"').nth(1).unwrap().trim_start_matches("./");
                    assert!(import.ends_with("\";") && before.contains(from), "{}: {line}", asset.name);
                }
                let line = line.strip_prefix("export ").unwrap_or(line);
                let line = line.strip_prefix("async ").unwrap_or(line);
                for start in ["function ", "const ", "let ", "class "] {
                    let Some(rest) = line.strip_prefix(start) else { continue };
                    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                    assert!(!name.is_empty(), "{}: a name of its own for each: {line}", asset.name);
                    assert!(names.insert(name), "{}: the name is taken: {line}", asset.name);
                }
            }
            before.insert(asset.name);
        }
        assert!(!bundle().contains("\nimport ") && !bundle().contains("\nexport "));
    }

    #[test]
    fn no_text_becomes_html() {
        for asset in ASSETS {
            let text = std::str::from_utf8(asset.bytes).unwrap();
            for way in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "eval("] {
                assert!(!text.contains(way), "{} has {way}", asset.name);
            }
        }
        assert!(!PAGE.contains("<style") && !PAGE.contains(" style=") && !PAGE.contains(" onload="));
    }
}
