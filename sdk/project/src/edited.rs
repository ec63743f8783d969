//! Whether the sources of a component changed after its build.

use crate::manifest::{MANIFEST, Project};
use crate::stamp::{Reason, Stamp};
use std::path::{Path, PathBuf};

/// A plugin that was edited after the build of its component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Edited {
    /// The plugin's folder.
    pub folder: PathBuf,
    /// What changed.
    pub reason: Reason,
}

/// The plugin of `component`, `FOLDER/build/NAME.wasm`, if its sources differ from those that were built. `None` where
/// nothing is known: the component is not in a plugin's folder, or its language writes no stamp.
pub fn edited(component: &Path) -> Option<Edited> {
    let project = project(component)?;
    let reason = Stamp::changed_sources(component, &project)?;
    Some(Edited { folder: project.folder, reason })
}

/// The project that `component` is built from.
fn project(component: &Path) -> Option<Project> {
    let open = |component: &Path| {
        let folder = component.parent().filter(|folder| folder.ends_with("build"))?.parent()?;
        let folder = if folder == Path::new("") { Path::new(".") } else { folder };
        // A quick build for tests is beside the component.
        let of_component = |project: &Project| project.component().file_name() == component.file_name();
        folder.join(MANIFEST).is_file().then(|| Project::open(folder).ok())?.filter(of_component)
    };
    // As it is written, for the message; a path inside of `build` shows no folder.
    open(component).or_else(|| open(&component.canonicalize().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inputs::Inputs;
    use std::fs;

    #[test]
    fn only_an_edit_of_the_sources_is_one() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("polite");
        fs::create_dir_all(folder.join("build")).unwrap();
        let write = |path: &str, text: &str| fs::write(folder.join(path), text).unwrap();
        let manifest = "[plugin]\nname = \"polite\"\nlanguage = \"python\"\nexports = [\"reward\"]\n";
        write("plugin.toml", manifest);
        write("main.py", "1");
        write("build/polite.wasm", "component");
        let component = folder.join("build/polite.wasm");
        assert_eq!(edited(&component), None);

        let mut inputs = Inputs::of(&Project::open(&folder).unwrap()).unwrap();
        inputs.set("the tool componentize-py", "0.25.1");
        inputs.set("the package six", "blake3:1");
        inputs.set("gavel itself", "blake3:1");
        Stamp::new(b"component", inputs).write(&component).unwrap();
        write("cases.jsonl", "{}");
        write("build/quick.wasm", "component");
        assert_eq!(edited(&component), None);

        write("main.py", "2");
        write("more.py", "1");
        let Edited { folder: found, reason } = edited(&component).unwrap();
        assert_eq!((found, reason.to_string()), (folder.clone(), "main.py changed, more.py is new".to_owned()));
        fs::remove_file(folder.join("main.py")).unwrap();
        assert_eq!(edited(&component).unwrap().reason.to_string(), "more.py is new, main.py is gone");
        assert_eq!(edited(&folder.join("build/quick.wasm")), None);

        write("main.py", "1");
        fs::remove_file(folder.join("more.py")).unwrap();
        assert_eq!(edited(&component), None);
        write("plugin.toml", &manifest.replace("[\"reward\"]", "[\"judger\"]"));
        assert_eq!(edited(&component).unwrap().reason.to_string(), "`exports` of plugin.toml was reward, now judger");
        fs::remove_file(folder.join("plugin.toml")).unwrap();
        assert_eq!(edited(&component), None);
    }
}
