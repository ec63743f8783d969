//! A scripted policy, and the tool that tests call.
#![allow(dead_code, reason = "each test program uses a part")]

use futures::FutureExt;
use gavel_agent::{
    ConversationKey, EpisodeLimits, History, LeftOut, McpSource, McpSpec, OnFailedCall, OnToolFailure, PendingTurn,
    Policy, ToolLimits, Turn, TurnRequest,
};
use gavel_data::{FinishReason, SamplingMask, SamplingMasks, Task};
use gavel_plugin::{Limits, PluginSpec, Sandbox, SandboxConfig};
use gavel_text::TextModel;
use serde_json::{Value, json};
use std::collections::VecDeque;
use std::convert::Infallible;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub fn built(path: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target").join(path);
    assert!(path.exists(), "{} is missing: run `cargo xtask plugins`", path.display());
    path
}

/// Bytes as tokens, with the chat template of a family.
pub fn text(template: &str) -> TextModel {
    let folder = tempfile::tempdir().unwrap();
    TextModel::byte_level().save(folder.path()).unwrap();
    let templates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/chat_templates");
    std::fs::copy(templates.join(template).with_extension("jinja"), folder.path().join("chat_template.jinja")).unwrap();
    TextModel::load(folder.path()).unwrap()
}

/// The same, with tokens for the marks of calls and of their answers. These are not special tokens, as in Qwen.
pub fn text_with_call_marks(template: &str) -> TextModel {
    let folder = tempfile::tempdir().unwrap();
    text(template).save(folder.path()).unwrap();
    let path = folder.path().join("tokenizer.json");
    let mut definition: Value = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    let tokens = definition["added_tokens"].as_array_mut().unwrap();
    for (content, id) in CALL_MARKS.into_iter().zip(300..) {
        tokens.push(json!({
            "id": id, "content": content, "single_word": false, "lstrip": false, "rstrip": false,
            "normalized": false, "special": false,
        }));
    }
    std::fs::write(path, definition.to_string()).unwrap();
    TextModel::load(folder.path()).unwrap()
}

pub const CALL_MARKS: [&str; 4] = ["<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>"];

/// A policy that writes given turns and remembers its requests.
pub struct Scripted {
    pub text: TextModel,
    pub turns: Mutex<VecDeque<String>>,
    pub asked: Mutex<Vec<TurnRequest>>,
    /// How long it took each time until the policy confirmed its requests, in seconds.
    pub confirming: Mutex<Vec<f64>>,
    /// The conversation of each of them.
    pub conversations: Mutex<Vec<u64>>,
    begun: AtomicU64,
    pub forgotten: Arc<Mutex<Vec<u64>>>,
}

impl Scripted {
    pub fn new(text: TextModel, turns: &[&str]) -> Self {
        let turns = turns.iter().map(|turn| (*turn).to_owned()).collect();
        Self {
            text,
            turns: Mutex::new(turns),
            asked: Mutex::default(),
            confirming: Mutex::default(),
            conversations: Mutex::default(),
            begun: AtomicU64::new(0),
            forgotten: Arc::default(),
        }
    }

    /// The text of everything that the policy saw before turn `turn`.
    pub fn saw(&self, turn: usize) -> String {
        self.text.tokenizer.decode_with(&self.asked.lock().unwrap()[turn].prompt, false).unwrap()
    }
}

impl Policy for Scripted {
    type Error = Infallible;

    fn text(&self) -> &TextModel {
        &self.text
    }

    fn conversation(&self) -> Option<ConversationKey> {
        let forgotten = self.forgotten.clone();
        let number = self.begun.fetch_add(1, Ordering::Relaxed);
        Some(ConversationKey::new(number, move |number| forgotten.lock().unwrap().push(number)))
    }

    async fn generate(&self, requests: Vec<TurnRequest>) -> Result<Vec<PendingTurn<Infallible>>, Infallible> {
        let start = Instant::now();
        let turn = |mut request: TurnRequest| {
            let written = self.turns.lock().unwrap().pop_front().expect("a turn more than in the script");
            let mut ids = self.text.tokenizer.encode(&written).unwrap();
            ids.push(self.text.tokenizer.eos());
            let finish_reason = if ids.len() > request.max_tokens { FinishReason::Length } else { FinishReason::Stop };
            ids.truncate(request.max_tokens);
            let (logprobs, versions) = (vec![-0.5; ids.len()], vec![3; ids.len()]);
            // As if nothing but the script could be drawn.
            let mut masks = SamplingMasks::new();
            ids.iter().for_each(|id| masks.push(&SamplingMask::Only(vec![*id])));
            self.conversations.lock().unwrap().extend(request.conversation.take().map(|key| key.number()));
            self.asked.lock().unwrap().push(request);
            async move { Ok(Turn { ids, logprobs, versions, masks, finish_reason }) }.boxed()
        };
        let turns = requests.into_iter().map(turn).collect();
        self.confirming.lock().unwrap().push(start.elapsed().as_secs_f64());
        Ok(turns)
    }
}

pub fn sandbox() -> Sandbox {
    Sandbox::new(SandboxConfig::with_threads(NonZeroUsize::new(2).unwrap())).unwrap()
}

pub fn toolbox() -> PluginSpec {
    let limits = Limits { cpu: Duration::from_millis(200), memory: 16 << 20, ..Limits::default() };
    PluginSpec { limits, ..PluginSpec::new("toolbox", built("guests/toolbox.wasm")) }
}

/// The program of an MCP server that misbehaves.
pub const HOSTILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/mcp_hostile.py");

/// An MCP server; starting Python takes seconds on a busy machine.
pub fn server(source: McpSource) -> McpSpec {
    let (timeout, output) = (Duration::from_secs(60), 64 << 10);
    let (api_key_env, env, limit, retries) = (None, Vec::new(), None, 5);
    McpSpec { name: "server".into(), source, api_key_env, env, timeout, output, limit, retries }
}

/// An MCP server that misbehaves in this way.
pub fn hostile_server(way: &str) -> McpSpec {
    server(McpSource::Program(["python3", HOSTILE, way].map(str::to_owned).to_vec()))
}

/// The toolbox with so much time that none of its calls ends before the sample does.
pub fn patient_toolbox() -> PluginSpec {
    let toolbox = toolbox();
    let limits = Limits { cpu: Duration::from_secs(60), deadline: Duration::from_secs(300), ..toolbox.limits };
    PluginSpec { limits, ..toolbox }
}

pub fn limits() -> EpisodeLimits {
    EpisodeLimits {
        max_turns: 4,
        deadline: Duration::from_secs(60),
        history: History::Exact,
        tools: ToolLimits {
            max_parallel_calls: 4,
            max_output_tokens: 200,
            left_out: LeftOut::Middle,
            on_failure: every_failure(OnFailedCall::Answer),
        },
    }
}

/// Every call that fails has this consequence.
pub fn every_failure(on: OnFailedCall) -> OnToolFailure {
    OnToolFailure { unavailable: on, out_of_budget: on, failed: on }
}

pub fn task(row: Value) -> Arc<Task> {
    Arc::new(Task::from_row(serde_json::from_value(row).unwrap(), 0, "train").unwrap())
}
