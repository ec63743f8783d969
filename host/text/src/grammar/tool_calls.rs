//! Replies that call tools, as grammars.

use super::lark::literal;
use super::schema::bound_to;
use crate::tokenizer::Tokenizer;
use crate::tool_calls::ToolCallFormat;
use serde_json::{Value, json};
use std::fmt::Write;

/// A tool of a request.
pub(super) struct Tool {
    pub(super) name: String,
    /// The schema of its arguments.
    pub(super) parameters: Value,
}

/// The tools that may be called: all, or the one of this name.
pub(super) fn chosen(tools: &[Value], name: Option<&str>) -> Result<Vec<Tool>, String> {
    let mut chosen = Vec::new();
    for tool in tools {
        let function = tool.get("function").unwrap_or(tool);
        let own = function.get("name").and_then(Value::as_str).filter(|name| !name.is_empty());
        let own = own.ok_or("a tool has no name")?;
        // Other characters could end the name where it is written.
        if let Some(other) = own.chars().find(|char| !char.is_ascii_alphanumeric() && !"_-.".contains(*char)) {
            return Err(format!(
                "the tool `{own}` has {other:?} in its name\nhint: use letters, digits, `_`, `-` and `.`"
            ));
        }
        if name.is_none_or(|name| name == own) {
            let parameters = function.get("parameters").filter(|parameters| !parameters.is_null()).cloned();
            let parameters = of_arguments(parameters.unwrap_or_else(|| json!({})), own)?;
            chosen.push(Tool { name: own.to_owned(), parameters });
        }
    }
    match (chosen.is_empty(), name) {
        (false, _) => Ok(chosen),
        (true, Some(name)) => Err(format!("there is no tool `{name}`")),
        (true, None) => Err("there are no tools".into()),
    }
}

/// The schema of arguments, which are an object also where the tool's own schema does not demand it.
fn of_arguments(mut parameters: Value, tool: &str) -> Result<Value, String> {
    let Some(schema) = parameters.as_object_mut() else {
        return Err(format!("the parameters of the tool `{tool}` are not a JSON object"));
    };
    match schema.get("type") {
        None => _ = schema.insert("type".into(), "object".into()),
        Some(kind) if kind == "object" => {}
        Some(_) => return Err(format!("the parameters of the tool `{tool}` must have the type `object`")),
    }
    Ok(parameters)
}

/// The texts around the name and the arguments of calls in a format.
struct Form {
    /// Before the first call.
    begin: &'static [Part],
    before_name: &'static [Part],
    before_arguments: &'static [Part],
    after_arguments: &'static [Part],
    /// Between two calls; `None` if a reply has only one.
    between: Option<&'static [Part]>,
    end: &'static [Part],
}

/// A part of a text.
enum Part {
    Text(&'static str),
    /// A mark, which may be a special token.
    Mark(&'static str),
}

use Part::{Mark, Text};

const HERMES: Form = Form {
    begin: &[],
    before_name: &[Mark("<tool_call>"), Text("\n{\"name\": \"")],
    before_arguments: &[Text("\", \"arguments\": ")],
    after_arguments: &[Text("}\n"), Mark("</tool_call>")],
    between: Some(&[Text("\n")]),
    end: &[],
};

const LLAMA: Form = Form {
    begin: &[],
    before_name: &[Text("{\"name\": \"")],
    before_arguments: &[Text("\", \"parameters\": ")],
    after_arguments: &[Text("}")],
    between: None,
    end: &[],
};

const MISTRAL_LIST: Form = Form {
    begin: &[Mark("[TOOL_CALLS]"), Text("[")],
    before_name: &[Text("{\"name\": \"")],
    before_arguments: &[Text("\", \"arguments\": ")],
    after_arguments: &[Text("}")],
    between: Some(&[Text(", ")]),
    end: &[Text("]")],
};

const MISTRAL_MARKS: Form = Form {
    begin: &[],
    before_name: &[Mark("[TOOL_CALLS]")],
    before_arguments: &[Mark("[ARGS]")],
    after_arguments: &[],
    between: Some(&[]),
    end: &[],
};

const HARMONY: Form = Form {
    begin: &[],
    before_name: &[Mark("<|channel|>"), Text("commentary to=functions.")],
    before_arguments: &[Text(" "), Mark("<|constrain|>"), Text("json"), Mark("<|message|>")],
    after_arguments: &[],
    between: None,
    end: &[],
};

const KIMI: Form = Form {
    begin: &[Mark("<|tool_calls_section_begin|>"), Mark("<|tool_call_begin|>"), Text("functions.")],
    before_name: &[],
    before_arguments: &[Text(":0"), Mark("<|tool_call_argument_begin|>")],
    after_arguments: &[],
    between: None,
    end: &[Mark("<|tool_call_end|>"), Mark("<|tool_calls_section_end|>")],
};

const DEEPSEEK: Form = Form {
    begin: &[Mark("<｜tool▁calls▁begin｜>")],
    before_name: &[Mark("<｜tool▁call▁begin｜>")],
    before_arguments: &[Mark("<｜tool▁sep｜>")],
    after_arguments: &[Mark("<｜tool▁call▁end｜>")],
    between: Some(&[]),
    end: &[Mark("<｜tool▁calls▁end｜>")],
};

impl Form {
    fn of(format: ToolCallFormat, tokenizer: &Tokenizer) -> Option<Self> {
        match format {
            ToolCallFormat::Hermes => Some(HERMES),
            ToolCallFormat::Llama3 => Some(LLAMA),
            ToolCallFormat::Mistral if tokenizer.token_id("[ARGS]").is_some() => Some(MISTRAL_MARKS),
            ToolCallFormat::Mistral => Some(MISTRAL_LIST),
            ToolCallFormat::Harmony => Some(HARMONY),
            ToolCallFormat::Kimi => Some(KIMI),
            ToolCallFormat::DeepSeek => Some(DEEPSEEK),
            // Their arguments are not JSON.
            ToolCallFormat::QwenXml
            | ToolCallFormat::Glm
            | ToolCallFormat::MiniMax
            | ToolCallFormat::Dsml
            | ToolCallFormat::Seed
            | ToolCallFormat::Gemma
            | ToolCallFormat::FunctionGemma
            | ToolCallFormat::Pythonic => None,
        }
    }
}

/// The grammar of a reply that calls these tools, once or, if it `has_more` calls, as often as the format allows.
pub(super) fn lark(
    format: ToolCallFormat,
    tools: &[Tool],
    has_more: bool,
    tokenizer: &Tokenizer,
) -> Result<String, String> {
    let Some(form) = Form::of(format, tokenizer) else {
        return Err(format!(
            "calls in the form {format:?}, which the model's chat template asks for, are not JSON\nhint: leave the choice to the model, with \"auto\""
        ));
    };
    let text = |parts: &[Part]| {
        let atoms: Vec<String> = parts.iter().map(|part| atom(part, tokenizer)).collect();
        atoms.join(" ")
    };
    let more =
        form.between.filter(|_| has_more).map(|between| format!("({} call)*", text(between))).unwrap_or_default();
    let mut grammar = format!("start: {} call {more} {}\n", text(form.begin), text(form.end));
    let names: Vec<String> = (0..tools.len()).map(|number| format!("call_{number}")).collect();
    // Writing to a string does not fail.
    let _ = writeln!(grammar, "call: {}", names.join(" | "));
    for (number, tool) in tools.iter().enumerate() {
        let _ = writeln!(
            grammar,
            "call_{number}: {} {} {} arguments_{number} {}\narguments_{number}: %json {}",
            text(form.before_name),
            literal(&tool.name),
            text(form.before_arguments),
            text(form.after_arguments),
            bound_to(&tool.parameters)
        );
    }
    Ok(grammar)
}

fn atom(part: &Part, tokenizer: &Tokenizer) -> String {
    match part {
        Text(text) => literal(text),
        Mark(mark) => match tokenizer.token_id(mark).filter(|id| tokenizer.is_special(*id)) {
            Some(id) => format!("<[{id}]>"),
            None => literal(mark),
        },
    }
}
