//! A plugin's folder: its manifest, its scaffold, its build.
//!
//! A folder that has a `plugin.toml` is a [`Project`]. [`create`] makes one from a template, with a copy of its
//! language's SDK. [`build`](fn@build) makes its component, unless its [`Stamp`] shows that nothing changed.
//! [`watch`](fn@watch) calls back when its sources change. Each language has a module for its own tools; everything
//! else is the same for all.

mod build;
mod component;
mod contract;
mod edited;
mod embedded;
mod error;
mod inputs;
mod language;
mod manifest;
mod name;
mod rust_flags;
mod scaffold;
mod sources;
mod stamp;
mod tool;
mod watch;
mod wrap;

pub use build::{Built, QUICK_SOURCES, Step, build, build_quick};
pub use edited::{Edited, edited};
pub use error::Error;
pub use inputs::Inputs;
pub use language::{Language, own_python, use_environment};
pub use manifest::{Export, Import, MANIFEST, Manifest, Project, named_component};
pub use rust_flags::path_flags;
pub use scaffold::{Created, Kind, New, Template, create};
pub use stamp::{Reason, Stamp};
pub use tool::Tool;
pub use watch::watch;
pub use wrap::{Convention, Wrap, Wrapped, wrap};
