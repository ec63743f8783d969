//! The names under which a component imports its code, and the code its memory.

/// The beginning of the names under which a component imports its code; a number follows.
const CODE: &str = "gavel-code-";

/// The name under which a component imports a part of its code.
pub(crate) fn code_name(number: usize) -> String {
    format!("{CODE}{number}")
}

/// Whether this is the name of a part of the code.
pub(crate) fn is_code_name(name: &str) -> bool {
    name.strip_prefix(CODE).is_some_and(|number| number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// The name of the memory, and of the instance that has it.
pub(super) const MEMORY: &str = "gavel-memory";
