//! Asks the model until it gives a verdict.

use crate::format::is_open;
use gavel_sdk::chat::{self, Error, Request};
use serde_json::{Map, Value};
use std::fmt;

/// Bytes of a reply that a message shows.
const SHOWN: usize = 300;

/// A model that is asked, and how.
#[derive(Debug, Clone)]
pub struct Model {
    /// The name of its `[chat.NAME]`.
    pub endpoint: String,
    /// The system prompt.
    pub system: Option<String>,
    /// How often it is asked again after a reply without a verdict.
    pub retries: u32,
    /// Further fields of each request.
    pub options: Map<String, Value>,
    /// The `response_format` of each request, unless the options determine the form of the reply.
    pub format: Option<Value>,
}

/// A verdict and its reply.
#[derive(Debug, Clone, PartialEq)]
pub struct Given<T> {
    /// The verdict.
    pub verdict: T,
    /// The whole reply.
    pub reply: String,
}

/// Why there is no verdict.
#[derive(Debug, Clone, PartialEq)]
pub enum Missing {
    /// The model did not answer.
    Unavailable(String),
    /// The endpoint refused the request, for example because it is too long for
    /// the model.
    Refused(String),
    /// It answered without a verdict; this is its last reply.
    Unclear(String),
    /// There was nothing to ask.
    Alone,
}

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unavailable(what) => write!(f, "unavailable: {what}"),
            Self::Refused(what) => write!(f, "refused: {what}"),
            Self::Unclear(reply) => write!(f, "the judge gave no verdict; its last reply was {:?}", cut(reply)),
            Self::Alone => f.write_str("the group has no other response to compare with"),
        }
    }
}

/// The end of a reply, where the verdict is.
pub fn cut(reply: &str) -> &str {
    let reply = reply.trim();
    &reply[reply.ceil_char_boundary(reply.len().saturating_sub(SHOWN))..]
}

/// Sends all requests at once. Replies without a verdict are answered with
/// `reminder`, again all at once.
pub fn ask<T: Clone>(
    model: &Model,
    prompts: &[String],
    reminder: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Vec<Result<Given<T>, Missing>> {
    let send = |requests| chat::complete(requests).into_iter().map(|reply| Ok(Reply::from(reply?))).collect();
    ask_with(model, prompts, reminder, parse, send)
}

/// Why a reply ended before its end: its last word may be the `1` of a `10`.
const CUT: [&str; 4] = ["length", "max_tokens", "content_filter", "abort"];

/// A reply of the model.
#[derive(Debug, Clone)]
struct Reply {
    text: String,
    /// Whether it was cut off, as by the token limit.
    cut: bool,
}

impl From<chat::Reply> for Reply {
    fn from(reply: chat::Reply) -> Self {
        let reason = reply.finish_reason();
        Self { text: reply.text(), cut: reason.is_some_and(|reason| CUT.contains(&reason.as_str())) }
    }
}

impl Reply {
    /// Its whole words: if it was cut off, the last one may be `1` of a `10`.
    fn words(&self) -> &str {
        match self.cut {
            true => &self.text[..self.text.rfind(char::is_whitespace).unwrap_or(0)],
            false => &self.text,
        }
    }
}

/// The turns after the prompt: the model's replies, each with the reminder.
type Turns = Vec<String>;

fn ask_with<T: Clone>(
    model: &Model,
    prompts: &[String],
    reminder: &str,
    parse: impl Fn(&str) -> Option<T>,
    send: impl Fn(Vec<Request>) -> Vec<Result<Reply, Error>>,
) -> Vec<Result<Given<T>, Missing>> {
    let mut found: Vec<Option<Result<Given<T>, Missing>>> = vec![None; prompts.len()];
    let mut turns: Vec<Turns> = vec![Turns::new(); prompts.len()];
    for _ in 0..=model.retries {
        let open: Vec<usize> = (0..prompts.len()).filter(|at| found[*at].is_none()).collect();
        if open.is_empty() {
            break;
        }
        let requests = open.iter().map(|at| request(model, &prompts[*at], &turns[*at], reminder)).collect();
        for (at, reply) in open.into_iter().zip(send(requests)) {
            match reply {
                Ok(reply) => match parse(reply.words()) {
                    Some(verdict) => found[at] = Some(Ok(Given { verdict, reply: reply.text })),
                    None => turns[at].push(reply.text),
                },
                Err(Error::Unavailable(what)) => found[at] = Some(Err(Missing::Unavailable(what))),
                Err(Error::InvalidRequest(what) | Error::Refused(what)) => {
                    found[at] = Some(Err(Missing::Refused(what)));
                }
            }
        }
    }
    let unclear = |turns: Turns| Missing::Unclear(turns.into_iter().next_back().unwrap_or_default());
    found.into_iter().zip(turns).map(|(found, turns)| found.unwrap_or_else(|| Err(unclear(turns)))).collect()
}

fn request(model: &Model, prompt: &str, turns: &Turns, reminder: &str) -> Request {
    let mut request = Request::new(&model.endpoint);
    if let Some(system) = &model.system {
        request = request.system(system);
    }
    request = request.user(prompt);
    for reply in turns {
        request = request.assistant(reply).user(reminder);
    }
    let format = model.format.iter().filter(|_| is_open(&model.options));
    let request = format.fold(request, |request, format| request.option("response_format", format.clone()));
    model.options.iter().fold(request, |request, (name, value)| request.option(name, value.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::score::score;
    use std::cell::RefCell;

    fn asked(retries: u32, rounds: &[&[Result<&str, Error>]]) -> (Vec<Result<f64, Missing>>, Vec<usize>) {
        let model = Model { endpoint: "judge".into(), system: None, retries, options: Map::new(), format: None };
        let prompts: Vec<String> = rounds[0].iter().map(|_| "?".to_owned()).collect();
        let sizes = RefCell::new(Vec::new());
        let send = |requests: Vec<Request>| {
            let round = rounds[sizes.borrow().len()];
            assert_eq!(round.len(), requests.len());
            sizes.borrow_mut().push(requests.len());
            let said = |text: &str| match text.strip_suffix('…') {
                Some(text) => Reply { text: text.to_owned(), cut: true },
                None => Reply { text: text.to_owned(), cut: false },
            };
            round.iter().map(|reply| reply.clone().map(said)).collect()
        };
        let found = ask_with(&model, &prompts, "again", score, send);
        (found.into_iter().map(|each| each.map(|given| given.verdict)).collect(), sizes.into_inner())
    }

    #[test]
    fn only_what_is_unclear_is_asked_again() {
        let (found, sizes) =
            asked(2, &[&[Ok("Score: 5"), Ok("Hm."), Ok("Well.")], &[Ok("Hm?"), Ok("Score: 10")], &[Ok("Score: 0")]]);
        assert_eq!(found, [Ok(0.5), Ok(0.0), Ok(1.0)]);
        assert_eq!(sizes, [3, 2, 1]);
    }

    #[test]
    fn a_reply_that_was_cut_off_is_not_read_to_its_end() {
        let (found, _) = asked(
            1,
            &[
                &[Ok("Score: 1…"), Ok("Score: 7\nFor it is…"), Ok("Score:…"), Ok("9…")],
                &[Ok("Score: 10"), Ok(""), Ok("")],
            ],
        );
        assert_eq!(found[..2], [Ok(1.0), Ok(0.7)]);
        assert_eq!(found[2..], [Err(Missing::Unclear(String::new())), Err(Missing::Unclear(String::new()))]);
    }

    #[test]
    fn a_request_that_is_refused_is_a_matter_of_its_own() {
        let (found, _) = asked(1, &[&[Ok("Score: 5"), Err(Error::Refused("too long".into()))]]);
        assert_eq!(found, [Ok(0.5), Err(Missing::Refused("too long".into()))]);
    }

    #[test]
    fn an_end_is_put_to_it() {
        let (found, sizes) = asked(1, &[&[Ok("a"), Err(Error::Unavailable("busy".into()))], &[Ok("b")]]);
        assert_eq!(found, [Err(Missing::Unclear("b".into())), Err(Missing::Unavailable("busy".into()))]);
        assert_eq!(sizes, [2, 1]);
    }
}
