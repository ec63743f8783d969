//! The answers that a ground truth accepts.

use answer_rules::strip;
use serde::Deserialize;
use serde_json::Value;

/// Forms of a ground truth other than a plain text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Gold {
    /// `{"target": …}`, as Search-R1 writes its rows.
    Target { target: Answers },
    /// `{"text": […], "answer_start": […]}`, as SQuAD does.
    Text { text: Answers },
    /// `["Paris", "City of Paris"]`
    List(Vec<Answer>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answers {
    One(Answer),
    Many(Vec<Answer>),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Answer {
    Text(String),
    Number(serde_json::Number),
}

/// The answers of a ground truth: one text, or JSON with several.
///
/// # Errors
/// It has no answer, or one that is blank.
pub fn answers(truth: &str) -> Result<Vec<String>, String> {
    let structured = serde_json::from_str(truth).ok().filter(|value: &Value| value.is_object() || value.is_array());
    let answers = match structured.map(serde_json::from_value) {
        None => vec![Answer::Text(truth.to_owned())],
        Some(Ok(
            Gold::Target { target: Answers::Many(answers) }
            | Gold::Text { text: Answers::Many(answers) }
            | Gold::List(answers),
        )) => answers,
        Some(Ok(Gold::Target { target: Answers::One(answer) } | Gold::Text { text: Answers::One(answer) })) => {
            vec![answer]
        }
        Some(Err(_)) => {
            return Err("the ground truth is JSON of another form: expected a text, a list of texts, \
                        {\"target\": …} or {\"text\": …}"
                .into());
        }
    };
    let answers: Vec<_> = answers.into_iter().map(Answer::into_text).collect();
    if answers.is_empty() {
        return Err("the ground truth has no answer: its list is empty".into());
    }
    if answers.iter().any(|answer| strip(answer).is_empty()) {
        return Err("the ground truth has a blank answer: an empty response would equal it".into());
    }
    Ok(answers)
}

impl Answer {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_answer_or_several_in_any_of_the_forms() {
        for truth in [r#"["Paris","3"]"#, r#"{"target":["Paris",3]}"#, r#"{"text":["Paris","3"],"answer_start":[1,9]}"#]
        {
            assert_eq!(answers(truth).unwrap(), ["Paris", "3"], "{truth}");
        }
        for truth in ["Paris", r#"{"target":"Paris"}"#] {
            assert_eq!(answers(truth).unwrap(), ["Paris"], "{truth}");
        }
        for truth in ["[1969", "1969", "{x}", "true"] {
            assert_eq!(answers(truth).unwrap(), [truth]);
        }
    }

    #[test]
    fn what_cannot_be_compared_with_is_an_error() {
        for truth in ["{}", "[[]]", r#"{"target":null}"#] {
            assert!(answers(truth).unwrap_err().contains("of another form"), "{truth}");
        }
        assert!(answers("[]").unwrap_err().contains("its list is empty"));
        for truth in ["", " ", "\u{1c}", r#"{"target":["a",""]}"#] {
            assert!(answers(truth).unwrap_err().contains("blank answer"), "{truth}");
        }
    }
}
