//! Counts the bytes that parsers read, in tests: a reply of a policy may not cost more than its length.

#[cfg(test)]
thread_local! {
    pub(super) static READ: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
}

/// Counts bytes that were read.
pub(super) fn read(bytes: usize) {
    #[cfg(test)]
    READ.with(|read| read.set(read.get() + bytes));
    #[cfg(not(test))]
    let _ = bytes;
}

/// Where `text` has `wanted` first.
pub(super) fn find(text: &str, wanted: &str) -> Option<usize> {
    let found = text.find(wanted);
    read(found.unwrap_or(text.len()) + 1);
    found
}

/// The place of the first of some marks that begin with `<`, and which it is.
pub(super) fn first<'m, const N: usize>(text: &str, marks: [&'m str; N]) -> Option<(usize, &'m str)> {
    let mark = |at: usize| marks.into_iter().find(|mark| text[at..].starts_with(*mark)).map(|mark| (at, mark));
    let found = text.match_indices('<').find_map(|(at, _)| mark(at));
    read(found.map_or(text.len(), |(at, _)| at) + 1);
    found
}

/// The text before the first `mark`, and the text after it.
pub(super) fn split_once<'t>(text: &'t str, mark: &str) -> Option<(&'t str, &'t str)> {
    find(text, mark).map(|at| (&text[..at], &text[at + mark.len()..]))
}

/// The text before the first `<`, where a mark may begin, and the rest.
pub(super) fn head(text: &str) -> (&str, &str) {
    text.split_at(find(text, "<").unwrap_or(text.len()))
}

/// The place where some texts are found next. It is remembered, so that many places may ask for the same.
pub(super) struct Ahead<'t, const N: usize> {
    text: &'t str,
    wanted: [&'static str; N],
    /// From where each text was looked for, and where it was found.
    found: [Option<(usize, usize)>; N],
}

impl<'t, const N: usize> Ahead<'t, N> {
    pub(super) fn new(text: &'t str, wanted: [&'static str; N]) -> Self {
        Self { text, wanted, found: [None; N] }
    }

    /// Where each of the texts stands first in `rest`, which is an end of the text; `usize::MAX` where it does not.
    pub(super) fn of(&mut self, rest: &str) -> [usize; N] {
        let from = self.text.len() - rest.len();
        let mut places = [usize::MAX; N];
        for ((place, wanted), found) in places.iter_mut().zip(self.wanted).zip(&mut self.found) {
            *place = match *found {
                Some((asked, at)) if (asked..=at).contains(&from) => at,
                _ => {
                    let at = find(rest, wanted).map_or(usize::MAX, |at| from + at);
                    *found = Some((from, at));
                    at
                }
            };
        }
        places
    }
}

#[cfg(test)]
mod tests {
    use super::READ;
    use crate::ToolCallFormat::{
        self, DeepSeek, Dsml, FunctionGemma, Gemma, Glm, Harmony, Hermes, Kimi, Llama3, MiniMax, Mistral, Pythonic,
        QwenXml, Seed,
    };

    const BYTES: usize = 1 << 20;

    /// Pieces of calls, which are put together in every way that a policy might find.
    const PIECES: [(ToolCallFormat, &[&str]); 14] = [
        (Hermes, &["<tool_call>", "</tool_call>", "{\"name\": \"f\"}", "{\"name\": \"</tool_call>", "\n"]),
        (
            QwenXml,
            &["<tool_call>", "</tool_call>", "<function=f>", "</function>", "<parameter=a>", "</parameter>", "\n", "a"],
        ),
        (Llama3, &["<|python_tag|>", "{\"name\": \"f\"}", ";", "f.call(", "a=\"", "\", "]),
        (Mistral, &["[TOOL_CALLS]", "[{\"name\": \"f\"}]", "f", "[ARGS]", "{}", "{\"a\": \"", "[CALL_ID]"]),
        (
            Harmony,
            &[
                "<|start|>",
                "<|channel|>",
                "commentary to=functions.f",
                "<|message|>",
                "{}",
                "{\"a\": \"",
                "<|call|>",
                "<|end|>",
            ],
        ),
        (Glm, &["<tool_call>", "</tool_call>", "f", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>", "\n"]),
        (
            MiniMax,
            &[
                "<minimax:tool_call>",
                "</minimax:tool_call>",
                "<invoke name=\"f\">",
                "<invoke name=",
                "</invoke>",
                "<parameter name=\"a\">",
                "</parameter>",
                "\"",
            ],
        ),
        (
            Kimi,
            &[
                "<|tool_calls_section_begin|>",
                "<|tool_calls_section_end|>",
                "<|tool_call_begin|>",
                "functions.f:0",
                "<|tool_call_argument_begin|>",
                "{}",
                "{\"a\": \"",
                "<|tool_call_end|>",
            ],
        ),
        (
            DeepSeek,
            &[
                "<｜tool▁calls▁begin｜>",
                "<｜tool▁calls▁end｜>",
                "<｜tool▁call▁begin｜>",
                "f",
                "<｜tool▁sep｜>",
                "{}",
                "\n```json\n",
                "<｜tool▁call▁end｜>",
            ],
        ),
        (
            Dsml,
            &[
                "<｜DSML｜function_calls>",
                "</｜DSML｜function_calls>",
                "<｜DSML｜invoke name=\"f\">",
                "</｜DSML｜invoke>",
                "<｜DSML｜parameter name=\"a\" string=\"true\">",
                "</｜DSML｜parameter>",
                "<｜DSML｜tool_calls>",
            ],
        ),
        (
            Seed,
            &[
                "<seed:tool_call>",
                "</seed:tool_call>",
                "<function=f>",
                "</function>",
                "<parameter=a>",
                "</parameter>",
                "</seed:think>",
            ],
        ),
        (Gemma, &["<|tool_call>", "<tool_call|>", "call:f", "{", "a:", "<|\"|>", "[", ",", "}", "<channel|>"]),
        (FunctionGemma, &["<start_function_call>", "<end_function_call>", "call:f{", "a:", "<escape>", "[", ",", "}"]),
        (Pythonic, &["<|python_start|>", "<|python_end|>", "[", "f(", "a=", "\"", "'", ",", ")", "]", "\\"]),
    ];

    fn read(format: ToolCallFormat, reply: &str) -> usize {
        READ.set(0);
        format.parse(reply, &[], 0);
        READ.get()
    }

    /// The longest texts are those of marks that begin calls without end, or end thoughts that did not begin.
    #[test]
    fn a_reply_is_read_in_steps_that_grow_with_its_length() {
        for (format, pieces) in PIECES {
            let thoughts = ["</think>", "<think>"];
            let all: Vec<&str> = pieces.iter().chain(&thoughts).copied().collect();
            let mut units: Vec<String> = Vec::new();
            for first in &all {
                units.push((*first).to_owned());
                for second in &all {
                    units.push([*first, *second].concat());
                }
            }
            // Whole calls, with each piece left out, or put first or last.
            let whole = pieces.concat();
            units.push(whole.clone());
            units.extend((0..pieces.len()).map(|left| [&pieces[..left], &pieces[left + 1..]].concat().concat()));
            units.extend(all.iter().flat_map(|piece| [format!("{whole}{piece}"), format!("{piece}{whole}")]));
            for unit in &units {
                for end in ["", "</think>", pieces[1], "\"", "}"] {
                    let reply = unit.repeat((BYTES >> 6) / unit.len()) + end;
                    let read = read(format, &reply);
                    assert!(
                        read <= 8 * reply.len(),
                        "{format:?} reads {read} bytes of {}: {unit:?}, {end:?}",
                        reply.len()
                    );
                }
            }
        }
        for (format, pieces) in PIECES {
            for piece in pieces {
                let reply = piece.repeat(BYTES / piece.len());
                let read = read(format, &reply);
                assert!(read <= 8 * reply.len(), "{format:?} reads {read} bytes of {}: {piece:?}", reply.len());
            }
        }
    }
}
