//! The names that a plugin may have.

use crate::error::Error;

/// The longest name, in bytes: it becomes a file, a crate and a package.
const LONGEST: usize = 64;

/// Checks a name: lower-case letters, digits and single dashes, a letter first.
pub(crate) fn check(name: &str) -> Result<(), Error> {
    let rule = if name.is_empty() {
        "it is empty"
    } else if !name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-') {
        "only lower-case letters, digits and dashes may be in it"
    } else if !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        "it must begin with a letter"
    } else if name.ends_with('-') || name.contains("--") {
        "a dash must stand between two letters or digits"
    } else if name.len() > LONGEST {
        "it is longer than 64 letters"
    } else {
        return Ok(());
    };
    Err(Error::Name { name: name.to_owned(), what: rule })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_follow_the_rules_of_every_language() {
        for good in ["polite", "a", "exact-answer", "top-5", &"a".repeat(64)] {
            check(good).unwrap();
        }
        for bad in ["", "Polite", "2fast", "-a", "a-", "a--b", "a_b", "a b", "é", "../a", "a.b", &"a".repeat(65)] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
