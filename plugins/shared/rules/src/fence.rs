//! Blocks between lines of three back-ticks.

/// A block between fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fence<'a> {
    /// The text after the first back-ticks.
    pub language: &'a str,
    /// The lines between the fences.
    pub content: &'a str,
    /// Whether the block ends in a closing fence, and not with the text or at
    /// the next block.
    pub closed: bool,
}

/// The blocks of `text`, in order. Back-ticks on both sides of a line's words
/// are not a fence.
pub fn fences(text: &str) -> Vec<Fence<'_>> {
    let (mut found, mut open, mut at) = (Vec::new(), None, 0);
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if let Some(language) = line.trim().strip_prefix("```").filter(|language| !language.contains("```")) {
            let closes = open.is_some() && language.is_empty();
            if let Some((start, language)) = open.take() {
                found.push(Fence { language, content: &text[start..at], closed: closes });
            }
            if !closes {
                open = Some((end, language.trim_start()));
            }
        }
        at = end;
    }
    found.extend(open.map(|(start, language)| Fence { language, content: &text[start..], closed: false }));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&str, &str, bool)> {
        fences(text).into_iter().map(|Fence { language, content, closed }| (language, content, closed)).collect()
    }

    #[test]
    fn a_block_runs_from_fence_to_fence() {
        assert_eq!(found("A\n```json\n{}\n```\nor\n``` \n[1]\n```\n"), [("json", "{}\n", true), ("", "[1]\n", true)]);
        assert_eq!(found("  ``` json\r\n{}\r\n  ```\r\n"), [("json", "{}\r\n", true)]);
        assert_eq!(found("no fence"), []);
    }

    #[test]
    fn a_block_may_end_with_the_text_or_where_another_begins() {
        assert_eq!(found("```\na\n```py\nb"), [("", "a\n", false), ("py", "b", false)]);
        assert_eq!(found("```py"), [("py", "", false)]);
    }

    #[test]
    fn words_in_back_ticks_are_no_fence() {
        assert_eq!(found("```a```\n```py\nb\n```c```\n```"), [("py", "b\n```c```\n", true)]);
    }
}
