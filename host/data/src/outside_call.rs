//! A request of a plugin, as a run records it.

use serde::Serialize;

/// A request that a plugin made of something outside its sandbox, and how it ended.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct OutsideCall {
    /// The id of the sample that it was made for, or of the group if a judger made it; absent for other requests.
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub made_for: Option<String>,
    /// The plugin, by its name in the run.
    pub plugin: String,
    /// The hash of the input of the plugin's call.
    pub input: String,
    /// The seed of the plugin's call.
    pub seed: u64,
    /// The kind of request.
    pub kind: OutsideCallKind,
    /// The name of the model or of the program, or the method and the URL without its query.
    pub endpoint: String,
    /// When it was made, in seconds since 1970 (UTC).
    pub timestamp: f64,
    /// Seconds in which it waited for its turn.
    pub waited: f64,
    /// The other seconds until it ended.
    pub ran: f64,
    /// Bytes of the question.
    pub question_bytes: u64,
    /// Bytes of the answer; 0 without one.
    pub answer_bytes: u64,
    /// How it ended.
    pub ended: OutsideCallEnding,
    /// The status of a server's response, or of a program that exited.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The question, if texts are recorded: its beginning where it is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// The answer, if texts are recorded: its beginning where it is long.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<String>,
}

/// The kind of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutsideCallKind {
    /// To a language model, `[chat.NAME]`.
    #[default]
    Chat,
    /// To a reward model, `[reward_model.NAME]`.
    RewardModel,
    /// To a server.
    Http,
    /// A program that was run, `[exec.NAME]`.
    Exec,
}

/// How a request ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OutsideCallEnding {
    /// It was answered, or the program exited.
    Answered,
    /// It is wrong and cannot be sent.
    InvalidRequest,
    /// The endpoint refused it, or the address of its server is not granted.
    Refused,
    /// There was no answer.
    Unavailable,
    /// The program trapped.
    Trapped,
    /// A budget of the call or of the program was exceeded.
    OutOfBudget,
    /// The call ended before it.
    #[default]
    Cancelled,
}

impl OutsideCall {
    /// About how many bytes it takes in memory.
    pub fn bytes(&self) -> usize {
        let texts = [&self.made_for, &self.error, &self.question, &self.answer];
        let texts: usize = texts.into_iter().flatten().map(String::len).sum();
        size_of::<Self>() + texts + self.plugin.len() + self.input.len() + self.endpoint.len()
    }
}
