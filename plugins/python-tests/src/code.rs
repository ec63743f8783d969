//! Finds the code in a response.

use answer_rules::fences;

/// The code of a response: the last block fenced as Python, else the last block
/// fenced without a language, else the whole response. Blank blocks do not
/// count. A block that is not closed extends to the end.
pub(crate) fn of(response: &str) -> &str {
    let blocks = fences(response).into_iter().filter_map(|fence| match fence.language.to_ascii_lowercase().as_str() {
        "python" | "python3" | "py" => Some((true, fence.content)),
        "" => Some((false, fence.content)),
        _ => None,
    });
    let blocks: Vec<(bool, &str)> = blocks.collect();
    if blocks.is_empty() {
        return response;
    }
    let last = |wanted| blocks.iter().rfind(|(python, code)| *python == wanted && !code.trim().is_empty());
    last(true).or_else(|| last(false)).map_or("", |(_, code)| code)
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn the_last_python_block_counts() {
        assert_eq!(of("First\n```python\na\n```\nthen\n```Python3\nb\n```\n```\nc\n```\n"), "b\n");
        assert_eq!(of("```\na\n```\nsays\n```text\nb\n```"), "a\n");
        assert_eq!(of("  ```py\n  a\n  ```"), "  a\n");
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
