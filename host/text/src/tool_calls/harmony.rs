//! Replies that are several messages, each in a channel: calls, thoughts, and text for the user.

use super::json;
use super::parsed::{Broken, MalformedCall, Parsed, ParsedCall};
use super::steps;
use std::ops::Range;

const START: &str = "<|start|>";
const CHANNEL: &str = "<|channel|>";
const MESSAGE: &str = "<|message|>";
const ENDS: [&str; 3] = ["<|end|>", "<|call|>", "<|return|>"];

/// A message of a reply.
struct Part<'t> {
    /// Its bytes, with its marks.
    whole: Range<usize>,
    body: Range<usize>,
    channel: &'t str,
    recipient: Option<&'t str>,
}

/// Reads the calls of a reply, which begins within the head of its first message. A call is a message to a function.
pub(super) fn read(reply: &str) -> Parsed {
    let (mut parsed, mut at) = (Parsed::default(), 0);
    let (mut thoughts, mut said) = (Vec::new(), Vec::new());
    while at < reply.len() {
        let Some(part) = part(reply, at) else {
            said.push(at..reply.len());
            break;
        };
        at = part.whole.end;
        match part.recipient {
            None if part.channel == "analysis" => thoughts.push(part.body),
            None => said.push(part.body),
            Some(recipient) => match call(&reply[part.body.start..], recipient) {
                Ok((call, length)) => {
                    parsed.calls.push(call);
                    at = part.body.start + length;
                }
                Err(broken) => {
                    let from = part.body.start + broken.read;
                    at = if broken.is_cut_off { reply.len() } else { from + end(&reply[from..]).1 };
                    let place = part.whole.start..at;
                    let text = reply[place.clone()].trim().to_owned();
                    parsed.malformed.push(MalformedCall { text, why: broken.why });
                    said.push(place);
                }
            },
        }
    }
    // The template takes one of both beside calls.
    if !thoughts.is_empty() {
        thoughts.append(&mut said);
        thoughts.sort_by_key(|place: &Range<usize>| place.start);
    }
    let thoughts = thoughts.into_iter().map(|place| reply[place].trim()).filter(|thought| !thought.is_empty());
    let thoughts: Vec<&str> = thoughts.collect();
    parsed.reasoning = Some(thoughts.join("\n\n")).filter(|thought| !thought.is_empty());
    parsed.kept = said;
    parsed
}

/// The message that begins at `at`, where its body ends with the next mark. There is none in text without a head.
fn part(reply: &str, at: usize) -> Option<Part<'_>> {
    let rest = &reply[at..];
    let mut marks = rest.match_indices("<|").map(|(place, _)| place).filter(|place| *place > 0);
    let is_other = |place: &usize| [START, MESSAGE].iter().chain(&ENDS).any(|mark| rest[*place..].starts_with(mark));
    let head = marks.find(is_other).filter(|place| rest[*place..].starts_with(MESSAGE));
    steps::read(head.unwrap_or(rest.len()));
    let body = head? + MESSAGE.len();
    let (length, after) = end(&rest[body..]);
    let head = &rest[..head?];
    let words =
        |text: &'_ str| text.split(|char: char| char.is_whitespace() || char == '<').next().unwrap_or_default().len();
    let channel = head.split_once(CHANNEL).map_or("", |(_, channel)| &channel[..words(channel)]);
    let recipient = head.split_once("to=").map(|(_, name)| &name[..words(name)]);
    Some(Part { whole: at..at + body + after, body: at + body..at + body + length, channel, recipient })
}

/// The bytes of a body, and with the mark that ends it.
fn end(text: &str) -> (usize, usize) {
    for (at, _) in text.match_indices("<|") {
        if let Some(mark) = ENDS.iter().find(|mark| text[at..].starts_with(**mark)) {
            steps::read(at);
            return (at, at + mark.len());
        }
        if text[at..].starts_with(START) {
            steps::read(at);
            return (at, at);
        }
    }
    steps::read(text.len());
    (text.len(), text.len())
}

/// The call whose body `text` begins with, and its bytes with the mark that ends it.
fn call(text: &str, recipient: &str) -> Result<(ParsedCall, usize), Broken> {
    let name = recipient.strip_prefix("functions.").unwrap_or(recipient);
    if name.is_empty() {
        return Err(Broken::at(text, text, "the function has no name"));
    }
    let (arguments, after) = json::arguments(text)?;
    let next = after.trim_start();
    let ended = ENDS.iter().find_map(|mark| next.strip_prefix(*mark));
    let rest = ended.or_else(|| (next.is_empty() || next.starts_with(START)).then_some(next));
    let why = "something other than `<|call|>` follows the arguments";
    let rest = rest.ok_or_else(|| Broken::before(text, next, &ENDS, why))?;
    Ok((ParsedCall { name: name.to_owned(), arguments, id: None }, text.len() - rest.len()))
}
