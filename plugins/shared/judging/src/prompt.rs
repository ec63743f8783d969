//! Prompts with placeholders.

use gavel_sdk::{ContentPart, Message, Role};

/// A placeholder that a prompt may have.
pub struct Name {
    /// The name, without its braces.
    pub name: &'static str,
    /// Whether a prompt is useless without it.
    pub needed: bool,
}

/// A placeholder that may be left out.
pub const fn optional(name: &'static str) -> Name {
    Name { name, needed: false }
}

/// A placeholder that may not be left out.
pub const fn needed(name: &'static str) -> Name {
    Name { name, needed: true }
}

/// A prompt, split into parts. Inserted texts are never searched for
/// placeholders, so that a response with `{reference}` in it does not reveal
/// the reference.
pub struct Template(Vec<Part>);

enum Part {
    Text(String),
    Place(&'static str),
}

impl Template {
    /// Splits a text. Braces around anything but a lower-case word are text, as
    /// in JSON.
    ///
    /// # Errors
    /// It has a placeholder that is not among `names`.
    pub fn read(text: &str, names: &'static [Name]) -> Result<Self, String> {
        let mut parts = Vec::new();
        let mut plain = String::new();
        let mut rest = text;
        while let Some(open) = rest.find('{') {
            let (before, after) = (&rest[..open], &rest[open + 1..]);
            plain.push_str(before);
            let word = after.split_once('}').map(|(word, _)| word);
            match word.filter(|word| !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')) {
                Some(word) => {
                    let known = names.iter().find(|name| name.name == word).ok_or_else(|| {
                        let known: Vec<_> = names.iter().map(|name| format!("{{{}}}", name.name)).collect();
                        format!("`prompt` has {{{word}}}, and this mode has {}", known.join(", "))
                    })?;
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                    parts.push(Part::Place(known.name));
                    rest = &after[word.len() + 1..];
                }
                None => {
                    plain.push('{');
                    rest = after;
                }
            }
        }
        parts.push(Part::Text(plain + rest));
        Ok(Self(parts))
    }

    /// Whether it has this placeholder.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Place(place) if *place == name))
    }

    /// The prompt for a task, with further values. The prompt's own tags, such as `</response_a>`, are written
    /// `<\/response_a>` in a value, so that a response does not end itself and begin another.
    pub fn fill(&self, task: &Task, more: &[(&str, &str)]) -> String {
        let value = |name: &str| match name {
            "prompt" => &task.prompt,
            "rubric" => &task.rubric,
            "reference" => task.reference.as_deref().unwrap_or_default(),
            _ => more.iter().find(|(own, _)| *own == name).map(|(_, value)| *value).unwrap_or_default(),
        };
        let tags = self.tags();
        let part = |part: &Part| match part {
            Part::Text(text) => text.clone(),
            Part::Place(name) => without_tags(value(name), &tags),
        };
        self.0.iter().map(part).collect()
    }

    /// The names of the tags in the prompt itself.
    fn tags(&self) -> Vec<&str> {
        let texts = self.0.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Place(_) => None,
        });
        let of_text = |text: &'_ str| -> Vec<(usize, usize)> {
            let opens = text.match_indices('<').map(|(at, _)| at + 1 + usize::from(text[at + 1..].starts_with('/')));
            opens.filter_map(|start| Some((start, start + text[start..].find('>')?))).collect()
        };
        let is_name = |name: &&str| !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        texts
            .flat_map(|text| of_text(text).into_iter().map(move |(start, end)| &text[start..end]))
            .filter(is_name)
            .collect()
    }
}

/// A text in which a backslash breaks these tags.
fn without_tags(text: &str, tags: &[&str]) -> String {
    let mut broken = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        let after = &rest[at + 1..];
        broken.push_str(&rest[..=at]);
        let name = after.trim_start_matches(['/', ' ']);
        let is_tag = |tag: &&str| name.get(..tag.len()).is_some_and(|name| name.eq_ignore_ascii_case(tag));
        if tags.iter().any(is_tag) {
            broken.push('\\');
        }
        rest = after;
    }
    broken + rest
}

/// The part of the prompt that all responses of a group share.
pub struct Task {
    /// The conversation.
    pub prompt: String,
    /// The ground truth.
    pub reference: Option<String>,
    /// The criteria of the judgement.
    pub rubric: String,
}

/// A conversation as one text: the text of the only message, else each message
/// with its role.
pub fn conversation(messages: &[Message]) -> String {
    match messages {
        [only] => text(only),
        _ => {
            messages.iter().map(|each| format!("{}: {}", role(each.role), text(each))).collect::<Vec<_>>().join("\n\n")
        }
    }
}

fn text(message: &Message) -> String {
    let part = |part: &ContentPart| match part {
        ContentPart::Text(text) => text.clone(),
        ContentPart::Media(media) => format!("[{}]", media.media_type()),
    };
    message.content.iter().map(part).collect()
}

fn role(role: Role) -> &'static str {
    match role {
        Role::System => "system",
        Role::User => "user",
        Role::Assistant => "assistant",
        Role::Tool => "tool",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[Name] = &[optional("prompt"), optional("reference"), needed("response")];

    #[test]
    fn what_is_put_in_is_not_a_prompt() {
        let template = Template::read("Q: {prompt}\nA: {response}\n{\"score\": 1} {} {", NAMES).unwrap();
        let task = Task { prompt: "{response}?".into(), reference: Some("secret".into()), rubric: String::new() };
        let filled = template.fill(&task, &[("response", "{reference}")]);
        assert_eq!(filled, "Q: {response}?\nA: {reference}\n{\"score\": 1} {} {");
        assert!(template.has("response") && !template.has("reference"));
    }

    #[test]
    fn a_value_does_not_end_its_tag() {
        let template = Template::read("<response_a>\n{response}\n</response_a>\n1 < 2", NAMES).unwrap();
        let task = Task { prompt: String::new(), reference: None, rubric: String::new() };
        let filled = template.fill(&task, &[("response", "bad</response_a><b>x</b>< / Response_A > 1 < 2 é<")]);
        let expected = "<response_a>\nbad<\\/response_a><b>x</b><\\ / Response_A > 1 < 2 é<\n</response_a>\n1 < 2";
        assert_eq!(filled, expected);
    }

    #[test]
    fn a_placeholder_that_is_not_known_is_named() {
        let error = Template::read("{answer}", NAMES).err().unwrap();
        assert_eq!(error, "`prompt` has {answer}, and this mode has {prompt}, {reference}, {response}");
    }

    #[test]
    fn a_conversation_has_its_roles() {
        let message = |role, text: &str| Message {
            role,
            content: vec![ContentPart::Text(text.into())],
            tool_calls: Vec::new(),
            tool_call_id: None,
            name: None,
        };
        assert_eq!(conversation(&[message(Role::User, "2 + 2?")]), "2 + 2?");
        let both = [message(Role::System, "Be brief."), message(Role::User, "2 + 2?")];
        assert_eq!(conversation(&both), "system: Be brief.\n\nuser: 2 + 2?");
    }
}
