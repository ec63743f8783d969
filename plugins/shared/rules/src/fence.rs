//! Blocks between lines of three back-ticks.

use std::borrow::Cow;

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
    /// The bytes of white space in front of the first back-ticks.
    pub indent: usize,
}

impl<'a> Fence<'a> {
    /// The lines between the fences without the indentation of the fence, as in
    /// CommonMark: a block in an item of a list is indented as a whole. A block
    /// whose first line is indented less loses no more than that.
    pub fn dedented(&self) -> Cow<'a, str> {
        let first = self.content.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
        let indent = self.indent.min(white(first));
        if indent == 0 {
            return Cow::Borrowed(self.content);
        }
        let lines = self.content.split_inclusive('\n').map(|line| &line[indent.min(white(line))..]);
        Cow::Owned(lines.collect())
    }
}

/// The bytes of white space that a line begins with.
fn white(line: &str) -> usize {
    line.bytes().take_while(|byte| matches!(byte, b' ' | b'\t')).count()
}

/// The blocks of `text`, in order. Back-ticks on both sides of a line's words
/// are not a fence.
pub fn fences(text: &str) -> Vec<Fence<'_>> {
    let (mut found, mut open, mut at) = (Vec::new(), None, 0);
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if let Some(language) = line.trim().strip_prefix("```").filter(|language| !language.contains("```")) {
            let closes = open.is_some() && language.is_empty();
            if let Some((start, language, indent)) = open.take() {
                found.push(Fence { language, content: &text[start..at], closed: closes, indent });
            }
            if !closes {
                open = Some((end, language.trim_start(), white(line)));
            }
        }
        at = end;
    }
    found.extend(open.map(|(start, language, indent)| {
        let content = &text[start..];
        Fence { language, content, closed: false, indent }
    }));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(text: &str) -> Vec<(&str, &str, bool)> {
        fences(text).into_iter().map(|Fence { language, content, closed, .. }| (language, content, closed)).collect()
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
    fn a_block_loses_the_indentation_of_its_fence() {
        let lines =
            |text: &str| fences(text).into_iter().map(|fence| fence.dedented().into_owned()).collect::<Vec<_>>();
        assert_eq!(lines("1. so\n   ```py\n   if a:\n       b\n\n   c\n   ```\n"), ["if a:\n    b\n\nc\n"]);
        assert_eq!(lines("\t```\n\ta\n\t\tb\n\t```"), ["a\n\tb\n"]);
        // A text in the code may begin further left.
        assert_eq!(lines("  ```\n  a = '''\nb\n   c'''\n  ```"), ["a = '''\nb\n c'''\n"]);
        assert_eq!(lines("   ```\nif a:\n  b\n   ```"), ["if a:\n  b\n"]);
        assert_eq!(lines("    ```\n  if a:\n    b\n    ```"), ["if a:\n  b\n"]);
        assert_eq!(lines("```\n  a\n```"), ["  a\n"]);
        assert_eq!(lines("  ```\n\n  ```"), ["\n"]);
    }

    #[test]
    fn words_in_back_ticks_are_no_fence() {
        assert_eq!(found("```a```\n```py\nb\n```c```\n```"), [("py", "b\n```c```\n", true)]);
    }
}
