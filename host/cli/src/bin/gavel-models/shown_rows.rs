//! Prints rows as a model reads them.

use anyhow::Result;
use gavel::terminal::{self, outln};
use gavel_pipeline::{ShownPart, ShownRow, ShownText};
use serde_json::{Value, json};
use std::process::ExitCode;

/// Prints the texts of rows, each below its title, or as a JSON object.
pub fn print_rows(rows: &[ShownRow], as_json: bool) -> Result<ExitCode> {
    for ShownRow { place, texts } in rows {
        for text in texts {
            if as_json {
                terminal::json(&object(place, text))?;
                continue;
            }
            let name = text.name.as_ref().map(|name| format!(", {name}")).unwrap_or_default();
            outln!("== {place}{name}: {}", counts(&text.parts));
            terminal::data(&marked(&text.parts))?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn object(place: &str, ShownText { name, parts }: &ShownText) -> Value {
    let part = |part: &ShownPart| json!({"text": part.text, "tokens": part.tokens, "learned": part.is_learned});
    json!({"row": place, "name": name, "parts": parts.iter().map(part).collect::<Vec<_>>()})
}

fn counts(parts: &[ShownPart]) -> String {
    let count = |part: &ShownPart| match (part.is_learned, part.tokens) {
        (false, tokens) => format!("{tokens} tokens read"),
        (true, 0) => "then the policy writes".to_owned(),
        (true, tokens) => format!("{tokens} learned"),
    };
    parts.iter().map(count).collect::<Vec<_>>().join(", ")
}

/// The lines of a text: `>` before what is learned, and `…` before what continues the line above.
fn marked(parts: &[ShownPart]) -> String {
    let (mut marked, mut continues) = (String::new(), ' ');
    for ShownPart { text, is_learned, .. } in parts {
        let mark = if *is_learned { '>' } else { ' ' };
        let lines = text.split_inclusive('\n').chain(text.is_empty().then_some(""));
        for line in lines {
            let end = if line.ends_with('\n') { "" } else { "\n" };
            marked.extend([mark, continues]);
            marked.push_str(line);
            marked.push_str(end);
            continues = if end.is_empty() { ' ' } else { '…' };
        }
    }
    marked
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(text: &str, is_learned: bool) -> ShownPart {
        ShownPart { text: text.to_owned(), tokens: text.len(), is_learned }
    }

    #[test]
    fn each_line_shows_whether_it_is_learned_and_where_it_begins() {
        let parts = [part("user:\n2+2\n<think>\n", false), part("two\n\n4<end>", true)];
        assert_eq!(marked(&parts), "  user:\n  2+2\n  <think>\n> two\n> \n> 4<end>\n");
        assert_eq!(counts(&parts), "18 tokens read, 11 learned");
        // What is learned begins within a line.
        assert_eq!(marked(&[part("a\nb:", false), part("c\nd", true)]), "  a\n  b:\n>…c\n> d\n");
        // Where the policy would write.
        assert_eq!(marked(&[part("a\n", false), part("", true)]), "  a\n> \n");
        assert_eq!(marked(&[part("a", false), part("", true)]), "  a\n>…\n");
        assert_eq!(counts(&[part("a", false), part("", true)]), "1 tokens read, then the policy writes");
    }
}
