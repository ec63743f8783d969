//! Where the code is in a response.

/// The code of a response: the last block that is fenced as Python, else the
/// last that is fenced as nothing, else the whole response. A block that is not
/// closed goes to the end.
pub(crate) fn of(response: &str) -> &str {
    let mut python = None;
    let mut plain = None;
    let mut open: Option<(usize, &str)> = None;
    let mut at = 0;
    for line in response.split_inclusive('\n') {
        let next = at + line.len();
        if let Some(language) = line.trim().strip_prefix("```") {
            match open.take() {
                None => open = Some((next, language)),
                Some((from, language)) => keep(&response[from..at], language, &mut python, &mut plain),
            }
        }
        at = next;
    }
    if let Some((from, language)) = open {
        keep(&response[from..], language, &mut python, &mut plain);
    }
    python.or(plain).unwrap_or(response)
}

fn keep<'a>(block: &'a str, language: &str, python: &mut Option<&'a str>, plain: &mut Option<&'a str>) {
    match language.trim().to_ascii_lowercase().as_str() {
        "python" | "python3" | "py" => *python = Some(block),
        "" => *plain = Some(block),
        _ => {}
    }
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
        assert_eq!(of(""), "");
    }
}
