//! Whether a component is up to date.
//!
//! A stamp is a file beside its component with the inputs of the build and the
//! component's hash. It is written last. So an interrupted build leaves a
//! component without a matching stamp, or the stamp and the component of the
//! build before, which are still valid.

use crate::error::Error;
use crate::inputs::{self, Change, Inputs};
use crate::manifest::Project;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// The inputs and the hash of a component.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stamp {
    /// The component's BLAKE3, in hexadecimal.
    pub component: String,
    /// The warnings of the build.
    #[serde(default)]
    pub warnings: String,
    /// The inputs that were known before the build.
    pub(crate) inputs: Inputs,
    /// Files that the build read beside these.
    #[serde(default)]
    pub(crate) elsewhere: Inputs,
}

/// Why a component is built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reason {
    /// There is no component from a complete build.
    First,
    /// The file differs from the component that was built.
    Replaced,
    /// Some of its inputs changed.
    Changed(Changes),
}

/// The changed inputs of a component.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Changes(Vec<Change>);

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::First => f.write_str("it was not built before"),
            Self::Replaced => f.write_str("its component is not the one that was built"),
            Self::Changed(Changes(changes)) => {
                let shown = changes.iter().take(2).map(Change::to_string).collect::<Vec<_>>().join(", ");
                let more = changes.len().saturating_sub(2);
                f.write_str(&shown)?;
                if more > 0 { write!(f, " and {more} more") } else { Ok(()) }
            }
        }
    }
}

impl Stamp {
    /// The stamp of a component with this content that is built from `inputs`.
    pub fn new(component: &[u8], inputs: Inputs) -> Self {
        let component = blake3::hash(component).to_hex().to_string();
        Self { component, warnings: String::new(), inputs, elsewhere: Inputs::default() }
    }

    /// The stamp of the component at `path` if it is up to date with `inputs`;
    /// else the reason why not.
    ///
    /// # Errors
    /// [`Reason`].
    pub fn check(path: &Path, inputs: &Inputs, folder: &Path) -> Result<Self, Reason> {
        let text = fs::read(place(path)).map_err(|_| Reason::First)?;
        // A stamp of another version of gavel cannot be parsed.
        let stamp: Self = serde_json::from_slice(&text).map_err(|_| Reason::First)?;
        let mut changes = stamp.inputs.changes(inputs);
        changes.extend(stamp.elsewhere.changes(&inputs::again(folder, &stamp.elsewhere)));
        if !changes.is_empty() {
            return Err(Reason::Changed(Changes(changes)));
        }
        let component = fs::read(path).map_err(|_| Reason::First)?;
        let same = blake3::hash(&component).to_hex().as_str() == stamp.component;
        if same { Ok(stamp) } else { Err(Reason::Replaced) }
    }

    /// The changes of `project`'s sources since the component at `path` was built. `None` if there are none, or no stamp.
    pub(crate) fn changed_sources(path: &Path, project: &Project) -> Option<Reason> {
        let stamp: Self = serde_json::from_slice(&fs::read(place(path)).ok()?).ok()?;
        let now = Inputs::of(project).ok()?;
        let mut changes = stamp.inputs.sources().changes(&now.sources());
        changes.extend(stamp.elsewhere.changes(&inputs::again(&project.folder, &stamp.elsewhere)));
        (!changes.is_empty()).then_some(Reason::Changed(Changes(changes)))
    }

    /// Writes the stamp beside the component at `path`, which must exist.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<(), Error> {
        let place = place(path);
        let error = |source: serde_json::Error| Error::file("write", &place)(source.into());
        put(&place, &serde_json::to_vec_pretty(self).map_err(error)?)
    }
}

/// The path of a component's stamp.
fn place(component: &Path) -> PathBuf {
    component.with_extension("stamp.json")
}

/// Writes a file atomically.
pub(crate) fn put(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    let partial = path.with_extension("partial");
    fs::write(&partial, bytes).map_err(Error::file("write", &partial))?;
    fs::rename(&partial, path).map_err(Error::file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn inputs(main: &str) -> Inputs {
        let mut inputs = Inputs::default();
        inputs.set("main.py", main);
        inputs
    }

    #[test]
    fn only_a_whole_build_from_the_same_is_unchanged() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let component = folder.join("a.wasm");
        let check = |main: &str| Stamp::check(&component, &inputs(main), folder).map_err(|reason| reason.to_string());
        assert_eq!(check("1"), Err("it was not built before".into()));

        fs::write(&component, "component 1").unwrap();
        // Interrupted before its stamp.
        assert_eq!(check("1"), Err("it was not built before".into()));
        let first = Stamp::new(b"component 1", inputs("1"));
        first.write(&component).unwrap();
        assert_eq!(check("1"), Ok(first.clone()));
        assert_eq!(check("2"), Err("main.py was 1, now 2".into()));

        // The build from 2 is interrupted before it wrote its component: the one of 1 is still whole.
        assert_eq!(check("1"), Ok(first));
        // After it wrote its component.
        fs::write(&component, "component 2").unwrap();
        assert_eq!(check("1"), Err("its component is not the one that was built".into()));
        assert_eq!(check("2"), Err("main.py was 1, now 2".into()));
        // After half of its stamp, as if the stamp were not written atomically.
        let whole = fs::read(place(&component)).unwrap();
        fs::write(place(&component), &whole[..whole.len() / 2]).unwrap();
        assert_eq!(check("2"), Err("it was not built before".into()));

        Stamp::new(b"component 2", inputs("2")).write(&component).unwrap();
        assert!(check("2").is_ok());
        fs::remove_file(&component).unwrap();
        assert_eq!(check("2"), Err("it was not built before".into()));
    }

    #[test]
    fn a_file_that_was_read_elsewhere_counts() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("plugin");
        fs::create_dir(&folder).unwrap();
        fs::write(place.path().join("shared.js"), "1").unwrap();
        let component = folder.join("a.wasm");
        fs::write(&component, "x").unwrap();
        let elsewhere = inputs::elsewhere(&folder, &["../shared.js".into()], &inputs("1")).unwrap();
        let stamp = Stamp { elsewhere, ..Stamp::new(b"x", inputs("1")) };
        stamp.write(&component).unwrap();
        assert_eq!(Stamp::check(&component, &inputs("1"), &folder), Ok(stamp));
        fs::write(place.path().join("shared.js"), "2").unwrap();
        let reason = Stamp::check(&component, &inputs("1"), &folder).unwrap_err();
        assert_eq!(reason.to_string(), "../shared.js changed");
    }

    #[test]
    fn many_changes_are_counted() {
        let mut now = inputs("1");
        for name in ["a", "b", "c"] {
            now.set(name, "x");
        }
        let reason = Reason::Changed(Changes(inputs("1").changes(&now)));
        assert_eq!(reason.to_string(), "a is new, b is new and 1 more");
    }
}
