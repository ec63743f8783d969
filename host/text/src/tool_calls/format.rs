//! The formats of calls.

/// The mark that ends a thought in most formats.
pub(super) const THOUGHT_END: &str = "</think>";

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
    /// `<|channel|>commentary to=functions.NAME <|constrain|>json<|message|>{…}<|call|>`,
    /// a message of its own: gpt-oss.
    Harmony,
    /// `<tool_call>NAME<arg_key>KEY</arg_key><arg_value>VALUE</arg_value>…</tool_call>`:
    /// GLM-4.5 to 4.7.
    Glm,
    /// `<minimax:tool_call><invoke name="NAME"><parameter name="KEY">VALUE</parameter>…</invoke>…</minimax:tool_call>`:
    /// MiniMax-M2.
    MiniMax,
    /// `<|tool_call_begin|>functions.NAME:INDEX<|tool_call_argument_begin|>{…}<|tool_call_end|>` for each call, within
    /// `<|tool_calls_section_begin|>` and `<|tool_calls_section_end|>`: Kimi K2.
    Kimi,
    /// `<｜tool▁call▁begin｜>NAME<｜tool▁sep｜>{…}<｜tool▁call▁end｜>` for each call, within `<｜tool▁calls▁begin｜>` and
    /// `<｜tool▁calls▁end｜>`: DeepSeek V3.1; or with `function<｜tool▁sep｜>NAME` and the arguments in a block of code:
    /// DeepSeek V3 and R1.
    DeepSeek,
    /// `<｜DSML｜invoke name="NAME"><｜DSML｜parameter name="KEY" string="true">VALUE</｜DSML｜parameter>…</｜DSML｜invoke>`
    /// for each call, within `<｜DSML｜function_calls>`, DeepSeek V3.2, or `<｜DSML｜tool_calls>`, DeepSeek V4.
    Dsml,
    /// `<seed:tool_call><function=NAME><parameter=KEY>VALUE</parameter>…</function></seed:tool_call>`:
    /// Seed-OSS.
    Seed,
    /// `<|tool_call>call:NAME{KEY:VALUE,…}<tool_call|>`, where texts stand between `<|"|>`:
    /// Gemma 4.
    Gemma,
    /// `<start_function_call>call:NAME{KEY:VALUE,…}<end_function_call>`, where texts stand between `<escape>`:
    /// FunctionGemma, of Gemma 3.
    FunctionGemma,
    /// The whole reply is `[NAME(KEY=VALUE, …), …]` with literals of Python, perhaps after `<|python_start|>`:
    /// Llama 3.2 and 4.
    Pythonic,
}

impl ToolCallFormat {
    /// The format that a chat template asks for, by the markers in its text;
    /// `None` if it is another format.
    pub fn detect(template: &str) -> Option<Self> {
        let has = |marker: &str| template.contains(marker);
        match () {
            () if has("<tool_call>") && has("<function=") => Some(Self::QwenXml),
            () if has("<tool_call>") && has("<arg_key>") => Some(Self::Glm),
            () if has("<tool_call>") => Some(Self::Hermes),
            () if has("[TOOL_CALLS]") => Some(Self::Mistral),
            () if has("<|channel|>commentary") => Some(Self::Harmony),
            () if has("<minimax:tool_call>") => Some(Self::MiniMax),
            () if has("<|tool_calls_section_begin|>") => Some(Self::Kimi),
            () if has("<｜tool▁calls▁begin｜>") => Some(Self::DeepSeek),
            () if has("｜DSML｜") => Some(Self::Dsml),
            () if has("<seed:tool_call>") => Some(Self::Seed),
            () if has("<|tool_call>call:") => Some(Self::Gemma),
            () if has("<start_function_call>") => Some(Self::FunctionGemma),
            () if has("[func_name1(") => Some(Self::Pythonic),
            () if has("<|python_tag|>") || (has("<|start_header_id|>") && has("\"parameters\"")) => Some(Self::Llama3),
            () => None,
        }
    }

    /// The marks around a thought.
    pub(super) fn thought(self) -> [&'static str; 2] {
        match self {
            Self::Seed => ["<seed:think>", "</seed:think>"],
            Self::Gemma => ["<|channel>", "<channel|>"],
            _ => ["<think>", THOUGHT_END],
        }
    }
}
