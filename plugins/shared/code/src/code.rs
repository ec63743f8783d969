//! Finds the code in a response.

use crate::language::Language;
use answer_rules::{Fence, fences};
use std::borrow::Cow;

/// The code of a response: the last block fenced as code in the language, else
/// the last block fenced without a language, else the whole response. Blank
/// blocks do not count. A block that is not closed extends to the end.
pub(crate) fn of(response: &str, language: Language) -> Cow<'_, str> {
    let blocks = fences(response).into_iter().filter_map(|fence| is_in(language, &fence).map(|is_in| (is_in, fence)));
    let blocks: Vec<(bool, Fence)> = blocks.collect();
    if blocks.is_empty() {
        return response.into();
    }
    let last = |wanted| blocks.iter().rfind(|(is_in, fence)| *is_in == wanted && !fence.content.trim().is_empty());
    last(true).or_else(|| last(false)).map_or("".into(), |(_, fence)| fence.dedented())
}

/// Whether the block is fenced as code in the language; `None` if it is in
/// another one. Only the first word after a fence names one.
fn is_in(language: Language, fence: &Fence) -> Option<bool> {
    match fence.language.split_whitespace().next() {
        Some(word) => language.is_named(word).then_some(true),
        None => Some(false),
    }
}

#[cfg(test)]
mod tests {
    use super::Language;
    use std::borrow::Cow;

    fn of(response: &str) -> Cow<'_, str> {
        super::of(response, Language::Python)
    }

    #[test]
    fn each_language_has_its_fences() {
        let response = "```python\na\n```\n```JS\nb\n```\n```javascript title=\"b.js\"\nc\n```\n```json\n{}\n```";
        assert_eq!(super::of(response, Language::JavaScript), "c\n");
        assert_eq!(super::of(response, Language::Python), "a\n");
        assert_eq!(super::of("```\nb\n```\n```ts\nc\n```", Language::JavaScript), "b\n");
        assert_eq!(super::of("```cpp\na\n```\n```C\nb\n```", Language::C), "b\n");
    }

    #[test]
    fn the_last_python_block_counts() {
        assert_eq!(of("First\n```python\na\n```\nthen\n```Python3\nb\n```\n```\nc\n```\n"), "b\n");
        assert_eq!(of("```\na\n```\nsays\n```text\nb\n```"), "a\n");
        assert_eq!(of("  ```py\n  a\n  ```"), "a\n");
        assert_eq!(of("```python title=\"a.py\"\na\n```\n```pycon\n>>> b\n```"), "a\n");
    }

    #[test]
    fn a_block_may_be_open_and_a_response_may_be_all_code() {
        assert_eq!(of("```python\na\nb"), "a\nb");
        assert_eq!(of("print(1)\n"), "print(1)\n");
        assert_eq!(of("```text\na\n```"), "```text\na\n```");
        assert_eq!(of("```python"), "");
        assert_eq!(of("```python\na\n```\n```python\n"), "a\n");
        assert_eq!(of(""), "");
    }
}
