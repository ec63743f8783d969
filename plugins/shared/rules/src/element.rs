//! Elements such as `<answer>4</answer>`.

/// The contents of the elements `<name>…</name>`, in order, each with the byte
/// that it starts at. An element ends at the first closing tag after it, and
/// the next one begins after that.
pub fn elements<'a>(text: &'a str, name: &str) -> impl Iterator<Item = (usize, &'a str)> {
    let (open, close) = (format!("<{name}>"), format!("</{name}>"));
    let mut at = 0;
    std::iter::from_fn(move || {
        let start = at + text[at..].find(&open)? + open.len();
        let end = start + text[start..].find(&close)?;
        at = end + close.len();
        Some((start, &text[start..end]))
    })
}

/// The content of the last element `<name>…</name>`.
pub fn last_element<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    elements(text, name).last().map(|(_, inside)| inside)
}

/// Refuses an invalid name of an element, with a sentence.
pub fn check_name(name: &str) -> Result<(), String> {
    let stray = |character: char| "<>/".contains(character) || character.is_whitespace();
    if name.is_empty() || name.contains(stray) {
        return Err(format!("{name:?} is not the name of an element, such as \"answer\""));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_in_order_and_do_not_overlap() {
        let text = "<a>1</a> <a>2<a>3</a> 4</a> <a>5";
        assert_eq!(elements(text, "a").collect::<Vec<_>>(), [(3, "1"), (12, "2<a>3")]);
        assert_eq!(last_element(text, "a"), Some("2<a>3"));
        assert_eq!(last_element("</a>1<a>", "a"), None);
        assert_eq!(last_element("<a></a>", "a"), Some(""));
    }

    #[test]
    fn a_name_has_no_brackets() {
        assert_eq!(check_name("answer"), Ok(()));
        for name in ["", "<answer>", "/answer", "an answer"] {
            assert!(check_name(name).unwrap_err().contains("is not the name of an element"), "{name}");
        }
    }
}
