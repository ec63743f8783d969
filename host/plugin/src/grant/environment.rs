//! `env`: environment variables that a plugin sees.

use super::error::GrantError;
use gavel_endpoint::{without_cut_secret, without_secret};
use std::env::VarError;
use wasmtime_wasi::WasiCtxBuilder;

/// The granted variables with their values, read when the plugin was loaded.
/// It has no `Debug`, so that no value is ever printed.
pub struct Environment(Vec<(String, String)>);

pub(super) fn check_names(names: &[String]) -> Result<(), GrantError> {
    match names.iter().find(|name| name.is_empty() || name.contains(['=', '\0'])) {
        Some(name) => Err(GrantError::VariableName { name: name.clone() }),
        None => Ok(()),
    }
}

impl Environment {
    /// Reads the variables with these names.
    ///
    /// # Errors
    /// One of them is not set, or is not UTF-8.
    pub fn read(names: &[String]) -> Result<Self, GrantError> {
        check_names(names)?;
        let read = |name: &String| match std::env::var(name) {
            Ok(value) => Ok((name.clone(), value)),
            Err(VarError::NotPresent) => Err(GrantError::NoVariable { name: name.clone() }),
            Err(VarError::NotUnicode(_)) => Err(GrantError::VariableText { name: name.clone() }),
        };
        names.iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    pub(super) fn show(&self, wasi: &mut WasiCtxBuilder) {
        wasi.envs(&self.0);
    }

    /// The variables with their values.
    pub fn values(&self) -> impl Iterator<Item = (String, String)> {
        self.0.iter().cloned()
    }

    /// Replaces the value of a variable by its name, however it is written: see [`without_secret`].
    pub fn redact(&self, text: String) -> String {
        self.redact_with(text.into_bytes(), without_secret)
    }

    /// The same for the beginning of a text, which may end within a value.
    pub(super) fn redact_beginning(&self, text: Vec<u8>) -> String {
        self.redact_with(text, without_cut_secret)
    }

    fn redact_with(&self, text: Vec<u8>, without: fn(Vec<u8>, &[u8], &str) -> Vec<u8>) -> String {
        // A header has a value without the spaces around it.
        let mut secrets: Vec<_> = self.0.iter().map(|(name, value)| (name, value.trim())).collect();
        // A value may begin with another one.
        secrets.sort_by_key(|(_, value)| std::cmp::Reverse(value.len()));
        let clean =
            secrets.into_iter().fold(text, |text, (name, value)| without(text, value.as_bytes(), &format!("${name}")));
        // Whole characters were replaced.
        String::from_utf8(clean).unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_not_there_is_named() {
        let read = |name: &str| Environment::read(&[name.to_owned()]).err().unwrap().to_string();
        assert!(read("GAVEL_TEST_ABSENT").contains("the variable GAVEL_TEST_ABSENT is not set\nhint:"));
        assert!(read("KEY=value").contains("is not the name of a variable"));
    }

    #[test]
    fn a_value_is_shown_to_nobody_but_the_plugin() {
        let env = Environment(vec![("KEY".into(), "s3cret-token".into()), ("MODE".into(), "a".into())]);
        assert_eq!(env.redact("a bad token s3cret-token.".into()), "a bad token $KEY.");
        assert_eq!(env.redact(r"é s3cret\u002dtoken, czNjcmV0LXRva2Vu, a".into()), "é $KEY, $KEY, a");
        assert_eq!(env.redact_beginning(b"a bad token s3cret-t".to_vec()), "a bad token $KEY");
        let spaced = Environment(vec![("KEY".into(), " s3cret-token\n".into())]);
        assert_eq!(spaced.redact("a bad token s3cret-token.".into()), "a bad token $KEY.");
        let nested = [("A", "s3cret"), ("B", "s3cret-and-more")].map(|(name, value)| (name.into(), value.into()));
        assert_eq!(Environment(nested.to_vec()).redact("s3cret-and-more s3cret".into()), "$B $A");
    }
}
