//! The formats of calls.

/// The format in which a model writes a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolCallFormat {
    /// `<tool_call>{"name": …, "arguments": {…}}</tool_call>`: Hermes,
    /// Qwen2.5, Qwen3.
    Hermes,
    /// `<tool_call><function=NAME><parameter=KEY>VALUE</parameter>…</function></tool_call>`:
    /// Qwen3-Coder, Qwen3.5.
    QwenXml,
    /// The whole reply is `{"name": …, "parameters": {…}}`, several divided by
    /// `;`, perhaps after `<|python_tag|>`; or `<|python_tag|>NAME.call(KEY="VALUE", …)`:
    /// Llama 3.
    Llama3,
    /// `[TOOL_CALLS][{"name": …, "arguments": {…}, "id": …}, …]`, or
    /// `[TOOL_CALLS]NAME[ARGS]{…}` for each call: Mistral.
    Mistral,
}

impl ToolCallFormat {
    /// The format that a chat template asks for, by the markers in its text;
    /// `None` if it is another format.
    pub fn detect(template: &str) -> Option<Self> {
        let has = |marker: &str| template.contains(marker);
        match () {
            // `<arg_key>` is GLM's format, which is not supported.
            () if has("<tool_call>") && has("<function=") => Some(Self::QwenXml),
            () if has("<tool_call>") && !has("<arg_key>") => Some(Self::Hermes),
            () if has("[TOOL_CALLS]") => Some(Self::Mistral),
            () if has("<|python_tag|>") || (has("<|start_header_id|>") && has("\"parameters\"")) => Some(Self::Llama3),
            () => None,
        }
    }
}
