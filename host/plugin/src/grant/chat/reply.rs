//! `chat.reply`: an answer's body, whose parts are parsed when they are read.

use crate::outside::{ChatBody, ChatError};
use serde::Deserialize;
use serde::de::{Deserializer as _, SeqAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

/// Behind `chat.reply`: the body of an answer, with at least one choice.
pub struct ChatReply(ChatBody);

#[derive(Deserialize)]
struct Completion<'a> {
    #[serde(borrow)]
    choices: Option<&'a RawValue>,
}

#[derive(Default, Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Part<'a> {
    #[serde(borrow)]
    text: Option<&'a RawValue>,
}

impl ChatReply {
    pub(super) fn new(body: ChatBody) -> Result<Self, ChatError> {
        let reply = Self(body);
        let none = || ChatError::Unavailable("the endpoint's answer has no choice with a message".into());
        let broken = |error| ChatError::Unavailable(format!("the endpoint's answer is not a completion: {error}"));
        match reply.first().map_err(broken)?.message {
            Some(message) if is_object(message) => {}
            _ => return Err(none()),
        }
        // Parsed once here, so that it cannot fail later.
        reply.text().map_err(broken)?;
        Ok(reply)
    }

    /// The body as it was received.
    pub(crate) fn json(&self) -> &str {
        self.0.json()
    }

    fn first(&self) -> serde_json::Result<Choice<'_>> {
        let body: &RawValue = serde_json::from_str(self.0.json())?;
        if !is_object(body) {
            return Ok(Choice::default());
        }
        let mut first = None;
        if let Some(choices) =
            serde_json::from_str::<Completion>(body.get())?.choices.filter(|choices| is_list(choices))
        {
            each(choices, |choice| {
                first.get_or_insert(choice);
            })?;
        }
        match first {
            Some(choice) if is_object(choice) => serde_json::from_str(choice.get()),
            _ => Ok(Choice::default()),
        }
    }

    /// The text of the first choice, whose content may come in parts.
    pub(crate) fn text(&self) -> serde_json::Result<String> {
        let message =
            self.first()?.message.map(|message| serde_json::from_str::<Message>(message.get())).transpose()?;
        let Some(content) = message.and_then(|message| message.content) else { return Ok(String::new()) };
        if !is_list(content) {
            return Ok(string(content)?.unwrap_or_default());
        }
        let (mut text, mut broken) = (String::new(), None);
        each(content, |part| match text_of(part) {
            Ok(piece) => text.push_str(&piece.unwrap_or_default()),
            Err(error) => broken = Some(error),
        })?;
        broken.map_or(Ok(text), Err)
    }

    /// The finish reason of the first choice, as the endpoint sent it.
    pub(crate) fn finish_reason(&self) -> serde_json::Result<Option<String>> {
        self.first()?.finish_reason.map_or(Ok(None), string)
    }
}

fn text_of(part: &RawValue) -> serde_json::Result<Option<String>> {
    if !is_object(part) {
        return Ok(None);
    }
    serde_json::from_str::<Part>(part.get())?.text.map_or(Ok(None), string)
}

fn is_object(value: &RawValue) -> bool {
    value.get().starts_with('{')
}

fn is_list(value: &RawValue) -> bool {
    value.get().starts_with('[')
}

/// A string, or `None` for any other value.
fn string(value: &RawValue) -> serde_json::Result<Option<String>> {
    value.get().starts_with('"').then(|| serde_json::from_str(value.get())).transpose()
}

/// Visits the elements of a list without a copy of all of them in memory.
fn each<'a>(list: &'a RawValue, mut visit: impl FnMut(&'a RawValue)) -> serde_json::Result<()> {
    struct Elements<F>(F);

    impl<'de, F: FnMut(&'de RawValue)> Visitor<'de> for Elements<F> {
        type Value = ();

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a list")
        }

        fn visit_seq<A: SeqAccess<'de>>(mut self, mut list: A) -> Result<(), A::Error> {
            while let Some(element) = list.next_element()? {
                (self.0)(element);
            }
            Ok(())
        }
    }

    serde_json::Deserializer::from_str(list.get()).deserialize_seq(Elements(&mut visit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outside::CallMeter;

    async fn reply(json: &str) -> Result<ChatReply, ChatError> {
        let meter = CallMeter::alone();
        let held = meter.hold(json.len()).unwrap();
        ChatReply::new(ChatBody::parse(json.to_owned().into(), held).unwrap())
    }

    #[tokio::test]
    async fn the_first_choice_counts_and_the_body_stays_as_it_came() {
        for (json, text, finish) in [
            (
                r#" {"choices":[{"message":{"content":"a\u00e9"},"finish_reason":"stop"},{"message":1}]} "#,
                "a\u{e9}",
                Some("stop"),
            ),
            (
                r#"{"id":4.50,"choices":[{"message":{"content":[{"text":"a"},"b",{"text":1},{"text":"c"}]}}]}"#,
                "ac",
                None,
            ),
            (r#"{"choices":[{"message":{"content":null},"finish_reason":7}]}"#, "", None),
            (r#"{"choices":[{"message":{}}]}"#, "", None),
        ] {
            let reply = reply(json).await.unwrap();
            assert_eq!((reply.text().unwrap(), reply.finish_reason().unwrap().as_deref()), (text.to_owned(), finish));
            assert_eq!(reply.0.json(), json.trim());
        }
    }

    #[tokio::test]
    async fn an_answer_without_a_message_is_unavailable() {
        let none = "the endpoint's answer has no choice with a message";
        for json in ["null", "[]", "{}", r#"{"choices":{}}"#, r#"{"choices":[]}"#, r#"{"choices":[{"message":["x"]}]}"#]
        {
            assert_eq!(reply(json).await.err(), Some(ChatError::Unavailable(none.into())), "{json}");
        }
        let broken = reply(r#"{"choices":[{"message":{"content":"\ud800"}}]}"#).await.err().unwrap();
        assert!(broken.to_string().starts_with("the endpoint's answer is not a completion: "), "{broken}");
    }
}
