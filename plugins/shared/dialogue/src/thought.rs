//! What a model thinks before it speaks.

/// The marks of a thought.
const BEGIN: &str = "<think>";
const END: &str = "</think>";

/// The text after its thoughts, trimmed; `None` if it ends within a thought. A chat template may have begun the thought,
/// so that its end alone is in the text.
pub fn without_thoughts(text: &str) -> Option<&str> {
    match text.rsplit_once(END) {
        Some((_, spoken)) => Some(spoken.trim()),
        None if text.trim_start().starts_with(BEGIN) => None,
        None => Some(text.trim()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thought_is_not_spoken() {
        for (text, spoken) in [
            ("<think>\nHe lies.\n</think>\n\nHello.\n", Some("Hello.")),
            ("He lies.</think>Hello.", Some("Hello.")),
            ("<think>a</think>Hm.<think>b</think> Hello.", Some("Hello.")),
            ("\n<think>He lies. Hello.", None),
            ("<think></think>", Some("")),
            (" Hello, <think> is a tag. ", Some("Hello, <think> is a tag.")),
        ] {
            assert_eq!(without_thoughts(text), spoken, "{text:?}");
        }
    }
}
