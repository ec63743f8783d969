//! A server's answer as text: the policy reads nothing else.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};

/// The text of a result, and whether it is the server's own error.
pub(super) fn text(result: CallToolResult) -> (String, bool) {
    let is_error = result.is_error.unwrap_or(false);
    let parts: Vec<String> = result.content.into_iter().map(part).collect();
    let text = match (parts.is_empty(), result.structured_content) {
        (true, Some(value)) => value.to_string(),
        _ => parts.join("\n"),
    };
    (text, is_error)
}

fn part(block: ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => format!("[an image, {}, is left out]", image.mime_type),
        ContentBlock::Audio(audio) => format!("[a recording, {}, is left out]", audio.mime_type),
        ContentBlock::ResourceLink(link) => format!("[{}]({})", link.name, link.uri),
        ContentBlock::Resource(resource) => match resource.resource {
            ResourceContents::TextResourceContents { text, .. } => text,
            ResourceContents::BlobResourceContents { uri, .. } => format!("[the file {uri} is left out]"),
            _ => "[content other than text is left out]".to_owned(),
        },
        _ => "[content other than text is left out]".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn read(result: Value) -> (String, bool) {
        text(serde_json::from_value(result).unwrap())
    }

    #[test]
    fn texts_are_joined_and_others_are_named() {
        let content = json!([
            {"type": "text", "text": "Two lines\nof text"},
            {"type": "image", "data": "AAAA", "mimeType": "image/png"},
            {"type": "resource_link", "uri": "file:///a.txt", "name": "a"},
            {"type": "resource", "resource": {"uri": "file:///b.txt", "text": "b"}},
            {"type": "resource", "resource": {"uri": "file:///c.bin", "blob": "AAAA"}}
        ]);
        let expected = "Two lines\nof text\n[an image, image/png, is left out]\n[a](file:///a.txt)\nb\n[the file file:///c.bin is left out]";
        assert_eq!(read(json!({"content": content})), (expected.into(), false));
    }

    #[test]
    fn structure_without_text_is_json() {
        assert_eq!(read(json!({"content": [], "structuredContent": {"sum": 5}})), (r#"{"sum":5}"#.into(), false));
        assert_eq!(read(json!({"content": [], "isError": true})), (String::new(), true));
    }
}
