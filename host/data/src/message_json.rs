//! Chat messages in the form of the OpenAI chat-completions protocol, which is
//! also how datasets write them.

use crate::json::Json;
use crate::message::{ContentPart, Media, Message, Role, ToolCall};
use base64::Engine as _;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

impl Serialize for Message {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        WrittenMessage::from(self).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Message {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(RawMessage::deserialize(deserializer)?.into())
    }
}

impl Serialize for ContentPart {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Value::from(self.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ContentPart {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_json(Value::deserialize(deserializer)?).map_err(D::Error::custom)
    }
}

impl Serialize for ToolCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RawToolCall::from(self.clone()).serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolCall {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(RawToolCall::deserialize(deserializer)?.into())
    }
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "`content` must be a text or a list of parts of the types \"text\" and \"image_url\", images as `data:…;base64,…`"
)]
enum RawContent {
    Text(String),
    Parts(Vec<ContentPart>),
}

#[derive(Deserialize)]
struct RawMessage {
    role: Role,
    #[serde(default)]
    content: Option<RawContent>,
    #[serde(default)]
    tool_calls: Option<Vec<ToolCall>>,
    #[serde(default)]
    tool_call_id: Option<String>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    reasoning_content: Option<String>,
    #[serde(default)]
    reasoning: Option<String>,
    #[serde(default)]
    thinking: Option<String>,
}

impl From<RawMessage> for Message {
    fn from(raw: RawMessage) -> Self {
        let content = match raw.content {
            None => Vec::new(),
            Some(RawContent::Text(text)) => vec![ContentPart::Text(text)],
            Some(RawContent::Parts(parts)) => parts,
        };
        Self {
            role: raw.role,
            content,
            tool_calls: raw.tool_calls.unwrap_or_default(),
            tool_call_id: raw.tool_call_id,
            name: raw.name,
            // Servers write the same under two names, and Parquet gives each message the names of all others.
            reasoning: raw.reasoning_content.or(raw.reasoning).or(raw.thinking),
        }
    }
}

/// A message as it is written.
#[derive(Serialize)]
struct WrittenMessage<'a> {
    role: Role,
    content: WrittenContent<'a>,
    #[serde(skip_serializing_if = "<[ToolCall]>::is_empty")]
    tool_calls: &'a [ToolCall],
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    #[serde(rename = "reasoning_content", skip_serializing_if = "Option::is_none")]
    reasoning: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum WrittenContent<'a> {
    Text(&'a str),
    Parts(&'a [ContentPart]),
}

impl<'a> From<&'a Message> for WrittenMessage<'a> {
    fn from(message: &'a Message) -> Self {
        let content = match &message.content[..] {
            [ContentPart::Text(text)] => WrittenContent::Text(text),
            parts => WrittenContent::Parts(parts),
        };
        Self {
            role: message.role,
            content,
            tool_calls: &message.tool_calls,
            tool_call_id: message.tool_call_id.as_deref(),
            name: message.name.as_deref(),
            reasoning: message.reasoning.as_deref(),
        }
    }
}

impl ContentPart {
    fn from_json(value: Value) -> Result<Self, String> {
        if let Value::String(text) = value {
            return Ok(ContentPart::Text(text));
        }
        match value.get("type").and_then(Value::as_str) {
            Some("text") => match value.get("text").and_then(Value::as_str) {
                Some(text) => Ok(ContentPart::Text(text.to_owned())),
                None => Err("a content part of type \"text\" has no string `text`".into()),
            },
            Some("image_url") => {
                let url = value.pointer("/image_url/url").and_then(Value::as_str).unwrap_or_default();
                let media = url
                    .strip_prefix("data:")
                    .and_then(|rest| rest.split_once(";base64,"))
                    .ok_or("an `image_url` must be a `data:…;base64,…` URL: Gavel fetches no images")?;
                let bytes = base64::engine::general_purpose::STANDARD
                    .decode(media.1)
                    .map_err(|error| format!("the base64 of an `image_url` is broken: {error}"))?;
                Ok(ContentPart::Media(Media { media_type: media.0.to_owned(), bytes: bytes.into() }))
            }
            Some(other) => {
                Err(format!("content parts of type {other:?} are not supported; use \"text\" or \"image_url\""))
            }
            None => Err("a content part needs a `type`".into()),
        }
    }
}

impl From<ContentPart> for Value {
    fn from(part: ContentPart) -> Self {
        match part {
            ContentPart::Text(text) => serde_json::json!({"type": "text", "text": text}),
            ContentPart::Media(media) => {
                let data = base64::engine::general_purpose::STANDARD.encode(&media.bytes);
                let url = format!("data:{};base64,{data}", media.media_type);
                serde_json::json!({"type": "image_url", "image_url": {"url": url}})
            }
        }
    }
}

/// `{"id", "type": "function", "function": {"name", "arguments"}}`, where
/// `arguments` may be an object or its JSON text.
#[derive(Serialize, Deserialize)]
struct RawToolCall {
    // Parquet fills in null where only other calls have an id.
    #[serde(default, deserialize_with = "text_or_none")]
    id: String,
    #[serde(rename = "type", skip_deserializing, default = "function_kind")]
    kind: String,
    function: RawFunction,
}

#[derive(Serialize, Deserialize)]
struct RawFunction {
    name: String,
    #[serde(default = "no_arguments", deserialize_with = "arguments")]
    arguments: String,
}

fn no_arguments() -> String {
    Json::default().plain_text()
}

fn text_or_none<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

/// A string as it is, any other value as JSON text.
fn arguments<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    Ok(Json::deserialize(deserializer)?.plain_text())
}

fn function_kind() -> String {
    "function".into()
}

impl From<RawToolCall> for ToolCall {
    fn from(raw: RawToolCall) -> Self {
        Self { id: raw.id, name: raw.function.name, arguments: raw.function.arguments }
    }
}

impl From<ToolCall> for RawToolCall {
    fn from(call: ToolCall) -> Self {
        let function = RawFunction { name: call.name, arguments: call.arguments };
        Self { id: call.id, kind: function_kind(), function }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    #[test]
    fn content_may_be_text_or_parts() {
        let message: Message = serde_json::from_str(
            r#"{"role":"user","content":[{"type":"text","text":"a"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AQI="}},"b"]}"#,
        )
        .unwrap();
        assert_eq!(message.text(), "ab");
        assert_eq!(
            message.content[1],
            ContentPart::Media(Media { media_type: "image/png".into(), bytes: Bytes::from_static(&[1, 2]) })
        );
        let again: Message = serde_json::from_str(&serde_json::to_string(&message).unwrap()).unwrap();
        assert_eq!(again, message);
    }

    #[test]
    fn null_content_and_tool_calls_arrive() {
        let message: Message = serde_json::from_str(
            r#"{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":{"x":1}}}]}"#,
        )
        .unwrap();
        assert!(message.content.is_empty());
        assert_eq!(message.tool_calls[0].arguments, r#"{"x":1}"#);
    }

    #[test]
    fn reasoning_keeps_its_name_apart_from_the_content() {
        let message: Message = serde_json::from_str(r#"{"role":"assistant","content":"2","reasoning":"1+1"}"#).unwrap();
        assert_eq!(message.reasoning.as_deref(), Some("1+1"));
        let again = serde_json::to_value(&message).unwrap();
        assert_eq!(again["reasoning_content"], "1+1");
        assert_eq!(message.text(), "2");
    }

    #[test]
    fn fields_that_are_null_are_absent() {
        // As Parquet gives each message, part and call the fields of all others.
        let message: Message = serde_json::from_str(
            r#"{"role":"assistant","content":[{"type":"text","text":"a","image_url":null}],"name":null,"tool_call_id":null,
                "reasoning":null,"thinking":null,"reasoning_content":"b",
                "tool_calls":[{"id":null,"type":null,"function":{"name":"f","arguments":"{\"x\":null}"}}]}"#,
        )
        .unwrap();
        let call = ToolCall { id: String::new(), name: "f".into(), arguments: r#"{"x":null}"#.into() };
        let expected =
            Message { reasoning: Some("b".into()), tool_calls: vec![call], ..Message::new(Role::Assistant, "a") };
        assert_eq!(message, expected);
    }

    #[test]
    fn a_remote_image_is_refused() {
        let error = serde_json::from_str::<ContentPart>(r#"{"type":"image_url","image_url":{"url":"http://x/y.png"}}"#)
            .unwrap_err();
        assert!(error.to_string().contains("Gavel fetches no images"), "{error}");
    }
}
