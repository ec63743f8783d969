//! A repository of the hub by its name.

use std::fmt;

/// A model or a dataset, at a revision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Repository {
    pub(crate) kind: Kind,
    pub(crate) organisation: String,
    pub(crate) name: String,
    /// A branch, a tag or a commit; `main` by default.
    pub(crate) revision: Option<String>,
}

/// What a repository holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A model.
    Model,
    /// A dataset.
    Dataset,
}

impl Repository {
    /// `ORG/NAME` or `ORG/NAME@REVISION`.
    pub(crate) fn parse(kind: Kind, text: &str) -> Option<Self> {
        let (name, revision) = match text.split_once('@') {
            Some((name, revision)) => (name, Some(revision.to_owned())),
            None => (text, None),
        };
        let (organisation, name) = name.split_once('/')?;
        let is_word = |word: &str| {
            let is_known = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            !word.is_empty() && !word.starts_with('.') && word.chars().all(is_known)
        };
        let is_revision = |revision: &String| revision.split('/').all(is_word);
        (is_word(organisation) && is_word(name) && revision.as_ref().is_none_or(is_revision)).then(|| Self {
            kind,
            organisation: organisation.into(),
            name: name.into(),
            revision,
        })
    }

    /// Its revision, `main` by default.
    pub(crate) fn revision(&self) -> &str {
        self.revision.as_deref().unwrap_or("main")
    }

    /// The folder of its page: `ORG/NAME`, or `datasets/ORG/NAME`.
    pub(crate) fn page(&self) -> String {
        let folder = if self.kind == Kind::Dataset { "datasets/" } else { "" };
        format!("{folder}{}/{}", self.organisation, self.name)
    }

    /// Its name in messages: `model ORG/NAME`.
    pub(crate) fn title(&self) -> String {
        format!("{} {self}", self.kind)
    }

    /// The command of the hub's own client that downloads it.
    pub(crate) fn download_command(&self) -> String {
        let kind = if self.kind == Kind::Dataset { "--repo-type dataset " } else { "" };
        let revision = self.revision.as_ref().map(|revision| format!(" --revision {revision}")).unwrap_or_default();
        format!("hf download {kind}{}/{}{revision}", self.organisation, self.name)
    }
}

/// Its name as it is written in a configuration.
impl fmt::Display for Repository {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let revision = self.revision.as_ref().map(|revision| format!("@{revision}")).unwrap_or_default();
        write!(f, "{}/{}{revision}", self.organisation, self.name)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Model => "model",
            Self::Dataset => "dataset",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_from_paths() {
        let is_name = |text: &str| Repository::parse(Kind::Model, text).is_some();
        assert!(is_name("Qwen/Qwen3-0.6B") && is_name("a/b_c.d@v1.0") && is_name("a/b@refs/pr/1"));
        let paths = ["model", "./a/b", "../b", "/a/b", "a/b/c", "~/b", "a/", "a/b@", "a/b@..", "a b/c"];
        assert!(!paths.into_iter().any(is_name));
    }

    #[test]
    fn a_repository_has_its_page_and_its_command() {
        let model = Repository::parse(Kind::Model, "a/b@v1").unwrap();
        assert_eq!((model.to_string(), model.page()), ("a/b@v1".into(), "a/b".into()));
        assert_eq!(model.download_command(), "hf download a/b --revision v1");
        let dataset = Repository::parse(Kind::Dataset, "a/b").unwrap();
        assert_eq!(dataset.page(), "datasets/a/b");
        assert_eq!(dataset.download_command(), "hf download --repo-type dataset a/b");
    }
}
