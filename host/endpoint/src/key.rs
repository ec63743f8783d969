//! The key of a server, which nothing that the server answers may show.

use crate::secret::{without_cut_secret, without_secret};
use reqwest::header::{HeaderValue, InvalidHeaderValue};
use std::env::VarError;

/// A key from a variable of the environment. It has no `Debug`.
#[derive(Clone)]
pub struct Key {
    variable: String,
    value: String,
}

impl Key {
    /// The key in a variable.
    ///
    /// # Errors
    /// The variable is not set.
    pub fn read(variable: &str) -> Result<Self, VarError> {
        Ok(Self { variable: variable.to_owned(), value: std::env::var(variable)?.trim().to_owned() })
    }

    /// It as a bearer token.
    ///
    /// # Errors
    /// It has characters that a header cannot have.
    pub fn bearer(&self) -> Result<HeaderValue, InvalidHeaderValue> {
        let mut header = HeaderValue::from_str(&format!("Bearer {}", self.value))?;
        header.set_sensitive(true);
        Ok(header)
    }

    /// It as the value of a header.
    ///
    /// # Errors
    /// It has characters that a header cannot have.
    pub fn header(&self) -> Result<HeaderValue, InvalidHeaderValue> {
        let mut header = HeaderValue::from_str(&self.value)?;
        header.set_sensitive(true);
        Ok(header)
    }

    /// An answer with `$VARIABLE` in place of the key.
    pub fn remove_from(&self, answer: Vec<u8>) -> Vec<u8> {
        without_secret(answer, self.value.as_bytes(), &format!("${}", self.variable))
    }

    /// The same for the beginning of an answer, which may end within the key.
    pub fn remove_from_beginning(&self, answer: Vec<u8>) -> Vec<u8> {
        without_cut_secret(answer, self.value.as_bytes(), &format!("${}", self.variable))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_does_not_show_the_key() {
        let key = |value: &str| Key { variable: "JUDGE_KEY".into(), value: value.into() };
        let shown =
            |value: &str, answer: &str| String::from_utf8(key(value).remove_from(answer.as_bytes().to_vec())).unwrap();
        let answer = r#"{"error": "no access with Bearer sk-s3cret", "key": "sk-s3cret"}"#;
        let expected = r#"{"error": "no access with Bearer $JUDGE_KEY", "key": "$JUDGE_KEY"}"#;
        assert_eq!(shown("sk-s3cret", answer), expected);
        assert_eq!(shown("none", "none of it"), "none of it");
        assert_eq!(shown("sk-s3cret", "sk-s3cre"), "sk-s3cre");
        assert_eq!(key("sk-s3cret").remove_from_beginning(b"for sk-s3cre".to_vec()), b"for $JUDGE_KEY");
    }
}
