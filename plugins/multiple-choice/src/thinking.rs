//! The part of a response that is not thinking.

/// The names of elements in which models think.
const NAMES: [&str; 4] = ["think", "thinking", "thought", "reasoning"];

/// What begins the answer of a model that thinks in a channel.
const FINAL: &str = "<|channel|>final<|message|>";

/// What follows the last section of thinking. A template may have opened the
/// first section in the prompt, so a closing tag alone ends one. Of a section
/// that is never closed, nothing is left: the response was cut off in it.
pub fn after_thinking(response: &str) -> &str {
    let closed = NAMES.iter().filter_map(|name| {
        let tag = format!("</{name}>");
        response.rfind(&tag).map(|at| at + tag.len())
    });
    let channel = response.rfind(FINAL).map(|at| at + FINAL.len());
    let closed = closed.chain(channel);
    let rest = &response[closed.max().unwrap_or(0)..];
    let opened = NAMES.iter().filter_map(|name| rest.find(&format!("<{name}>")));
    &rest[..opened.min().unwrap_or(rest.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_follows_the_thinking_is_left() {
        assert_eq!(after_thinking("<think>A?</think>B"), "B");
        assert_eq!(after_thinking("A?</think>\nB"), "\nB");
        assert_eq!(after_thinking("<think>A</think>B<think>C</think>D"), "D");
        assert_eq!(after_thinking("<reasoning>A</reasoning><answer>B</answer>"), "<answer>B</answer>");
        assert_eq!(after_thinking("B<think>C"), "B");
        assert_eq!(after_thinking("<think>B"), "");
        assert_eq!(after_thinking("<|channel|>analysis<|message|>A<|channel|>final<|message|>B"), "B");
        assert_eq!(after_thinking("I think B"), "I think B");
    }
}
