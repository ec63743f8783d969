//! The templates in the files of a checkpoint.

use crate::error::{Result, TextError};
use crate::files;
use crate::tokenizer::{SPECIAL_TOKENS, read_settings};
use serde_json::{Map, Value, json};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub(super) const DEFAULT: &str = "default";
/// The name of the template for conversations with tools.
pub(super) const TOOL_USE: &str = "tool_use";
const SETTINGS: &str = "tokenizer_config.json";

/// A template and its file.
#[derive(Debug, Clone)]
pub(super) struct Source {
    pub name: String,
    pub text: String,
    pub path: PathBuf,
}

/// The templates of a checkpoint: `chat_template.jinja` with
/// `additional_chat_templates/*.jinja`, or else `chat_template` of
/// `tokenizer_config.json`, which is a text or a list of named texts. Of several,
/// one is named `default`. Where `dir` has no template, the templates of `base`
/// are read; base models often have none at all.
pub(super) fn sources(dir: &Path, base: &Path) -> Result<Vec<Source>> {
    let mut sources = found(dir)?;
    if sources.is_empty() && base != dir {
        sources = found(base)?;
    }
    if sources.len() < 2 || sources.iter().any(|source| source.name == DEFAULT) {
        return Ok(sources);
    }
    let names: Vec<&str> = sources.iter().map(|source| source.name.as_str()).collect();
    Err(TextError::File {
        path: sources[0].path.clone(),
        what: format!("no chat template is named `default`: there are {}\nhint: name one `default`", names.join(", ")),
    })
}

fn found(dir: &Path) -> Result<Vec<Source>> {
    let sources = in_files(dir)?;
    if !sources.is_empty() {
        return Ok(sources);
    }
    let settings = dir.join(SETTINGS);
    match files::read_object(&settings)?.get("chat_template") {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::String(text)) => Ok(vec![Source { name: DEFAULT.into(), text: text.clone(), path: settings }]),
        Some(list) => named(list, &settings),
    }
}

fn in_files(dir: &Path) -> Result<Vec<Source>> {
    let mut sources = Vec::new();
    let path = dir.join("chat_template.jinja");
    if let Some(text) = files::read(&path)? {
        sources.push(Source { name: DEFAULT.into(), text, path });
    }
    let more = dir.join("additional_chat_templates");
    let unreadable = |source| TextError::Io { action: "read", path: more.clone(), source };
    let entries = match std::fs::read_dir(&more) {
        Ok(entries) => entries,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(sources),
        Err(error) => return Err(unreadable(error)),
    };
    for entry in entries {
        let path = entry.map_err(unreadable)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".jinja"));
        if let Some(name) = name.map(str::to_owned)
            && let Some(text) = files::read(&path)?
        {
            sources.push(Source { name, text, path });
        }
    }
    sources.sort_by(|left, right| (left.name != DEFAULT, &left.name).cmp(&(right.name != DEFAULT, &right.name)));
    Ok(sources)
}

/// `[{"name": …, "template": …}, …]`
fn named(list: &Value, path: &Path) -> Result<Vec<Source>> {
    let read = |entry: &Value| {
        let (name, text) = (entry["name"].as_str()?.to_owned(), entry["template"].as_str()?.to_owned());
        Some(Source { name, text, path: path.to_owned() })
    };
    list.as_array().and_then(|list| list.iter().map(read).collect()).ok_or_else(|| TextError::File {
        path: path.to_owned(),
        what: "`chat_template` is neither a string nor a list of `{\"name\": …, \"template\": …}`".into(),
    })
}

/// The value of `chat_template` in `tokenizer_config.json` for these templates.
pub(super) fn to_settings(sources: &[Source]) -> Option<Value> {
    Some(match sources {
        [] => return None,
        [source] => source.text.as_str().into(),
        several => several.iter().map(|source| json!({"name": source.name, "template": source.text})).collect(),
    })
}

/// The special tokens, such as `bos_token`, of `tokenizer_config.json`, or else
/// of `special_tokens_map.json`.
pub(super) fn special_tokens(dir: &Path) -> Result<Map<String, Value>> {
    let (mut settings, more) = read_settings(dir)?;
    settings.extend(more);
    let text = |name: &str| settings.get(name).and_then(files::token_text);
    Ok(SPECIAL_TOKENS.into_iter().filter_map(|name| Some((name.to_owned(), text(name)?.into()))).collect())
}

/// Changes a template so that minijinja can render it. Lines end in `\n`. The
/// block `generation`, which marks the assistant's text, becomes `with`: like
/// `generation`, it has its own scope of variables, and it does nothing else.
pub(super) fn prepare(text: &str) -> String {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (mut out, mut rest) = (String::with_capacity(text.len()), text.as_str());
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start + 2);
        out.push_str(before);
        let name_at = tag.len() - tag.trim_start_matches(['-', '+']).trim_start().len();
        let (head, body) = tag.split_at(name_at);
        out.push_str(head);
        let end = body.find(|char: char| !char.is_ascii_alphanumeric() && char != '_').unwrap_or(body.len());
        let ends = body[end..].trim_start().trim_start_matches(['-', '+']).starts_with("%}");
        out.push_str(match &body[..end] {
            "generation" if ends => "with",
            "endgeneration" if ends => "endwith",
            other => other,
        });
        rest = &body[end..];
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::prepare;

    #[test]
    fn generation_blocks_are_replaced_and_nothing_else() {
        assert_eq!(prepare("{%- generation -%}a{% endgeneration %}\r\nb"), "{%- with -%}a{% endwith %}\nb");
        for same in ["{% set generation = 1 %}{{ generation }}", "{% if generation %}", "{%", "{% generation", "é{%"] {
            assert_eq!(prepare(same), same);
        }
    }
}
