//! Variables of the chat template that a row, a request or a configuration sets.

use serde_json::{Map, Value};

/// The names that are no variables of a template: what Gavel itself passes to it, and arguments of
/// `apply_chat_template` in `transformers`.
const TAKEN: [&str; 16] = [
    "messages",
    "tools",
    "add_generation_prompt",
    "strftime_now",
    "raise_exception",
    "conversation",
    "chat_template",
    "continue_final_message",
    "tokenize",
    "padding",
    "truncation",
    "max_length",
    "return_tensors",
    "return_dict",
    "return_assistant_tokens_mask",
    "tokenizer_kwargs",
];

/// Refuses variables of a chat template that are none.
///
/// # Errors
/// The first name that is taken, and why.
pub fn check_template_kwargs(variables: &Map<String, Value>) -> Result<(), String> {
    match variables.keys().find(|name| TAKEN.contains(&name.as_str())) {
        Some(name) => Err(format!("`{name}` is not a variable of the chat template that can be set")),
        None => Ok(()),
    }
}
