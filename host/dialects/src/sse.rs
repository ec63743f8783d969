//! Server-sent events as they come, in pieces of any size.

/// What a piece of a stream completes.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The data of an event.
    Data(String),
    /// A comment, which keeps the connection alive.
    Comment,
}

/// Reads the events of a stream.
#[derive(Debug, Default)]
pub(crate) struct Reader {
    line: Vec<u8>,
    data: Option<String>,
}

impl Reader {
    /// Reads a piece, and gives the events that it completes.
    pub(crate) fn push(&mut self, piece: &[u8]) -> Vec<Event> {
        let mut events = Vec::new();
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                let line = std::mem::take(&mut self.line);
                events.extend(self.line(String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r'])));
            }
        }
        events
    }

    fn line(&mut self, line: &str) -> Option<Event> {
        if line.is_empty() {
            return self.data.take().map(Event::Data);
        }
        if line.starts_with(':') {
            return Some(Event::Comment);
        }
        if let Some(data) = line.strip_prefix("data:") {
            let data = data.strip_prefix(' ').unwrap_or(data);
            match &mut self.data {
                Some(before) => before.extend(["\n", data]),
                None => self.data = Some(data.to_owned()),
            }
        }
        // Other fields, such as `event` and `id`, say nothing here.
        None
    }
}

/// Adds an event to a stream.
pub(crate) fn write(out: &mut String, name: Option<&str>, data: &serde_json::Value) {
    if let Some(name) = name {
        out.extend(["event: ", name, "\n"]);
    }
    out.extend(["data: ", &data.to_string(), "\n\n"]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_the_same_however_they_are_cut() {
        let text = ": hi\n\ndata: {\"a\": \"ü\"}\r\n\r\nevent: x\ndata:1\ndata: 2\n\n\nid: 7\n\ndata: [DONE]\n\n";
        let whole = Reader::default().push(text.as_bytes());
        let expected = ["{\"a\": \"ü\"}", "1\n2", "[DONE]"].map(|data| Event::Data(data.into()));
        assert_eq!(whole[0], Event::Comment);
        assert_eq!(whole[1..], expected);
        for cut in 0..text.len() {
            let (mut reader, (one, other)) = (Reader::default(), text.as_bytes().split_at(cut));
            let mut events = reader.push(one);
            events.extend(reader.push(other));
            assert_eq!(events, whole, "cut at {cut}");
        }
        let mut reader = Reader::default();
        let each: Vec<Event> = text.bytes().flat_map(|byte| reader.push(&[byte])).collect();
        assert_eq!(each, whole);
    }
}
