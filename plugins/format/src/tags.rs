//! A response that consists of elements.

use answer_rules::check_name;

/// Elements in their order, such as `think` and `answer`.
pub struct Tags(Vec<String>);

impl Tags {
    /// Refuses invalid names, with a sentence.
    pub fn new(names: Vec<String>) -> Result<Self, String> {
        if names.is_empty() {
            return Err("the list is empty: give the elements that a response consists of".into());
        }
        for (at, name) in names.iter().enumerate() {
            check_name(name)?;
            if names[..at].contains(name) {
                return Err(format!("{name:?} is listed twice: each element occurs once"));
            }
        }
        Ok(Self(names))
    }

    /// Whether `response` is exactly these elements in this order, each once,
    /// none of them blank, with nothing but white space around them.
    ///
    /// # Errors
    /// The first mistake.
    pub fn check(&self, response: &str) -> Result<(), String> {
        let mut rest = response;
        for name in &self.0 {
            let (open, close) = (format!("<{name}>"), format!("</{name}>"));
            let after =
                rest.trim_start().strip_prefix(&open).ok_or_else(|| format!("{open} is not where it belongs"))?;
            let (inside, after) = after.split_once(&close).ok_or_else(|| format!("{open} is not closed"))?;
            if inside.trim().is_empty() {
                return Err(format!("{open} is blank"));
            }
            if let Some(tag) = self.tag_in(inside) {
                return Err(format!("{tag} is inside {open}"));
            }
            rest = after;
        }
        if rest.trim().is_empty() { Ok(()) } else { Err("there is text after the last element".into()) }
    }

    /// A tag of any of the elements in `text`.
    fn tag_in(&self, text: &str) -> Option<String> {
        self.0.iter().flat_map(|name| [format!("<{name}>"), format!("</{name}>")]).find(|tag| text.contains(tag))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(response: &str) -> Result<(), String> {
        Tags::new(vec!["think".into(), "answer".into()]).unwrap().check(response)
    }

    #[test]
    fn the_response_is_the_elements_and_nothing_else() {
        assert_eq!(check("<think>1 < 2</think><answer>4</answer>"), Ok(()));
        assert_eq!(check("\n<think>\nso\n</think>\n\n<answer>4</answer>\n"), Ok(()));
        for (response, problem) in [
            ("", "<think> is not where it belongs"),
            ("Well <think>a</think><answer>4</answer>", "<think> is not where it belongs"),
            ("<answer>4</answer><think>a</think>", "<think> is not where it belongs"),
            ("<think>a<answer>4</answer>", "<think> is not closed"),
            ("<think>a</think> so <answer>4</answer>", "<answer> is not where it belongs"),
            ("<think>a</think><answer>4", "<answer> is not closed"),
            ("<think> </think><answer>4</answer>", "<think> is blank"),
            ("<think>a<think>b</think><answer>4</answer>", "<think> is inside <think>"),
            ("<think>a</think><answer><answer>4</answer>", "<answer> is inside <answer>"),
            ("<think>a</think><answer>4</answer>!", "there is text after the last element"),
            ("<think>a</think><answer>4</answer><answer>5</answer>", "there is text after the last element"),
        ] {
            assert_eq!(check(response), Err(problem.into()), "{response}");
        }
    }

    #[test]
    fn names_that_no_element_has_are_refused() {
        for names in [vec![], vec![""], vec!["<think>"], vec!["a b"], vec!["a", "b", "a"]] {
            assert!(Tags::new(names.iter().map(|name| (*name).to_owned()).collect()).is_err(), "{names:?}");
        }
    }
}
