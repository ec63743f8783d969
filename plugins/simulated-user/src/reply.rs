//! What a reply of the model is: a message, a farewell, or neither.

use gavel_sdk::chat;
use std::fmt;
use user_dialogue::{Said, without_thoughts};

/// Why a reply ended before its end.
const CUT: [&str; 4] = ["length", "max_tokens", "content_filter", "abort"];
/// Characters of a farewell that rewards read.
const FAREWELL_CHARS: usize = 4000;

/// A reply of the model.
#[derive(Debug, Clone)]
pub(crate) struct Reply {
    pub(crate) text: String,
    /// Whether it was cut off, as by the token limit.
    pub(crate) is_cut: bool,
}

impl From<chat::Reply> for Reply {
    fn from(reply: chat::Reply) -> Self {
        let reason = reply.finish_reason();
        Self { text: reply.text(), is_cut: reason.is_some_and(|reason| CUT.contains(&reason.as_str())) }
    }
}

/// What a reply must be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Rules<'a> {
    /// The phrase with which the user ends the conversation.
    pub(crate) stop: &'a str,
    /// The most characters of a message.
    pub(crate) max_chars: usize,
    /// Whether the user may end the conversation.
    pub(crate) may_end: bool,
}

/// Why a reply is no message of a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unusable {
    Empty,
    Thought,
    Cut,
    Long { chars: usize, most: usize },
    Early,
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("empty"),
            Self::Thought => f.write_str("a thought without a message"),
            Self::Cut => f.write_str("cut off before its end"),
            Self::Long { chars, most } => write!(f, "{chars} characters long, and at most {most} are allowed"),
            Self::Early => f.write_str("the end of a conversation that had not begun"),
        }
    }
}

impl Rules<'_> {
    /// Reads a reply. One that ends the conversation may have been cut off after that.
    pub(crate) fn read(&self, reply: &Reply) -> Result<Said, Unusable> {
        let spoken = without_thoughts(&reply.text).ok_or(Unusable::Thought)?;
        if spoken.contains(self.stop) {
            let words = spoken.replace(self.stop, "");
            let farewell = words.trim().chars().take(FAREWELL_CHARS).collect();
            return self.may_end.then_some(Said::Farewell(farewell)).ok_or(Unusable::Early);
        }
        let (chars, most) = (spoken.chars().count(), self.max_chars);
        match chars {
            _ if reply.is_cut => Err(Unusable::Cut),
            0 => Err(Unusable::Empty),
            _ if chars > most => Err(Unusable::Long { chars, most }),
            _ => Ok(Said::Message(spoken.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: Rules<'static> = Rules { stop: "###STOP###", max_chars: 10, may_end: true };

    fn read(text: &str) -> Result<Said, Unusable> {
        RULES.read(&Reply { text: text.into(), is_cut: false })
    }

    #[test]
    fn a_reply_is_a_message_or_a_farewell() {
        let message = |text: &str| Ok(Said::Message(text.into()));
        let farewell = |text: &str| Ok(Said::Farewell(text.into()));
        for (reply, said) in [
            (" Why?\n", message("Why?")),
            ("<think>###STOP###?</think>\nWhy?", message("Why?")),
            ("éééééééééé", message("éééééééééé")),
            ("##STOP##", message("##STOP##")),
            ("###STOP###", farewell("")),
            ("Thanks, that is all. ###STOP###\n", farewell("Thanks, that is all.")),
            ("Bye.###STOP### ###STOP###", farewell("Bye.")),
            ("", Err(Unusable::Empty)),
            ("<think>Hm.</think>\n", Err(Unusable::Empty)),
            ("<think>Hm.", Err(Unusable::Thought)),
            ("01234567890", Err(Unusable::Long { chars: 11, most: 10 })),
        ] {
            assert_eq!(read(reply), said, "{reply:?}");
        }
        let long = format!("{}###STOP###", "é".repeat(5000));
        assert_eq!(read(&long), farewell(&"é".repeat(4000)));
    }

    #[test]
    fn a_user_does_not_end_what_has_not_begun() {
        let rules = Rules { may_end: false, ..RULES };
        let reply = Reply { text: "Hi. ###STOP###".into(), is_cut: false };
        assert_eq!(rules.read(&reply), Err(Unusable::Early));
    }

    #[test]
    fn a_reply_that_was_cut_off_is_no_message() {
        let cut = |text: &str| RULES.read(&Reply { text: text.into(), is_cut: true });
        assert_eq!(cut("I want"), Err(Unusable::Cut));
        assert_eq!(cut(""), Err(Unusable::Cut));
        assert_eq!(cut("Bye. ###STOP### For"), Ok(Said::Farewell("Bye.  For".into())));
    }
}
