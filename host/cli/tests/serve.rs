//! `gavel serve`, asked by the official `openai` client and those of other makers, and `gavel generate`.
//!
//! It needs what `cargo xtask test` provides: the packages openai, anthropic and google-genai in the Python that comes
//! first.
#![cfg(feature = "train")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use gavel_policy::{Device, Model, ModelConfig};
use gavel_text::TextModel;
use project::{Project, built, lines, stderr};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A model of random weights, whose tokens are bytes.
fn model(dir: &Path) {
    let config: ModelConfig = serde_json::from_value(json!({
        "vocab_size": 259, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2,
        "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 1024,
        "initializer_range": 0.3, "tie_word_embeddings": false,
    }))
    .unwrap();
    TextModel::byte_level().save(dir).unwrap();
    Model::random(config, 3, Device::Cpu).unwrap().save(dir).unwrap();
}

fn gavel(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gavel"));
    command.args(args).env("OMP_NUM_THREADS", "1");
    command
}

/// A server that ends with the test, whether or not the test passes.
struct Server {
    child: Child,
    /// `http://127.0.0.1:PORT/v1`
    base_url: String,
}

impl Server {
    fn start(args: &[&str]) -> Self {
        let mut child = gavel(&["serve", "--port", "0"]).args(args).stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let base_url = line.trim().rsplit(' ').next().unwrap().to_owned();
        assert!(base_url.starts_with("http://127.0.0.1:"), "{line}");
        Self { child, base_url }
    }

    /// The answer to a request that no client would make.
    fn raw(&self, request: &str) -> String {
        let address = self.base_url.trim_start_matches("http://").trim_end_matches("/v1");
        let mut stream = TcpStream::connect(address).unwrap();
        stream.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn get(&self, path: &str) -> String {
        self.raw(&format!("GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

fn stdout(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

#[test]
fn the_official_client_is_served() {
    let folder = tempfile::tempdir().unwrap();
    model(folder.path());
    let dir = folder.path().to_str().unwrap();
    let server = Server::start(&["-m", dir, "--name", "nonsense", "--max-batch", "8", "--cache-memory", "192KiB"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openai_client.py");
    let mut python = Command::new("python3");
    // Requests to this machine must not go through a proxy.
    python.arg(script).args([server.base_url.as_str(), "nonsense"]).env("NO_PROXY", "127.0.0.1");
    let said = stdout(&python.output().unwrap());

    assert!(server.get("/health").ends_with(r#"{"status":"ok"}"#));
    let metrics = server.get("/metrics");
    let value = |name: &str| -> f64 {
        let line = metrics.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{name}: {metrics}"));
        line.rsplit(' ').next().unwrap().parse().unwrap()
    };
    assert_eq!((value("gavel_requests_running "), value("gavel_requests_waiting ")), (0.0, 0.0));
    assert!(value("gavel_requests_total{reason=\"length\"}") > 50.0);
    assert!(value("gavel_requests_total{reason=\"stop\"}") >= 1.0);
    assert!(value("gavel_requests_total{reason=\"cancelled\"}") >= 1.0);
    assert!(value("gavel_preemptions_total ") >= 1.0);
    assert!(value("gavel_generated_tokens_total ") > 1000.0);
    assert!(value("gavel_time_to_first_token_seconds_count ") > 50.0);
    let broken = server.raw(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 9\r\n\r\n{\"model\":",
    );
    assert!(broken.starts_with("HTTP/1.1 400") && broken.contains("EOF while parsing"), "{broken}");
    let read = server.get("/v1/completions");
    assert!(read.starts_with("HTTP/1.1 405") && read.contains("use POST for completions"), "{read}");

    // On the command line, the same model gives the same response.
    let prompt =
        "<|im_start|>system\nSay letters.<|im_end|>\n<|im_start|>user\nGrüße 😀<|im_end|>\n<|im_start|>assistant\n";
    let args = ["generate", "-m", dir, "--prompt", prompt, "--temperature", "0", "--max-tokens", "24", "--json"];
    let object: Value = serde_json::from_str(&stdout(&gavel(&args).output().unwrap())).unwrap();
    let hex = |text: &str| text.bytes().map(|byte| format!("{byte:02x}")).collect::<String>();
    assert_eq!(hex(object["text"].as_str().unwrap()), said.trim());
}

/// Writes calls as Qwen2.5 does.
const TOOLS: &str = r#"{% if tools %}Call <tool_call>{"name", "arguments"}</tool_call>: {{ tools | tojson }}
{% endif %}{% for message in messages %}<|im_start|>{{ message.role }}
{{ message.content or '' }}{% for call in message.tool_calls or [] %}
<tool_call>
{{ {"name": call.function.name, "arguments": call.function.arguments} | tojson }}
</tool_call>{% endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"#;

#[test]
fn what_a_model_learned_of_calls_and_of_judging_is_served() {
    let project = Project::empty();
    let folder = project.path("model");
    model(&folder);
    project.write("model/chat_template.jinja", TOOLS);
    let integer = json!({"type": "integer"});
    let parameters = json!({"type": "object", "properties": {"a": integer, "b": integer}});
    let call = json!({"name": "add", "arguments": {"a": 2, "b": 3}});
    let calls = json!({
        "messages": [
            {"role": "user", "content": "2 + 3?"},
            {"role": "assistant", "content": "I add.", "tool_calls": [{"id": "c", "type": "function", "function": call}]},
        ],
        "tools": [{"type": "function", "function": {"name": "add", "parameters": parameters}}],
    });
    let judges = json!({
        "prompt": [{"role": "system", "content": "Answer with a number."}, {"role": "user", "content": "0: good"}],
        "response": "7",
    });
    project.write("rows.jsonl", &format!("{calls}\n{judges}\n"));
    project.write(
        "sft.toml",
        "[model]\npath = \"model\"\n[data]\ntrain = \"rows.jsonl\"\n[rollout]\nmax_tokens = 8\n\
         [train]\nsteps = 150\nbatch_size = 2\nlearning_rate = 1e-2\nschedule = \"cosine\"\n",
    );
    project.succeed(&["sft", "-c", "sft.toml"]);
    let checkpoint = project.path("runs/run/checkpoints/step-000150");
    let server = Server::start(&["-m", checkpoint.to_str().unwrap(), "--name", "learned"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/openai_tools.py");
    let mut python = Command::new("python3");
    python.arg(script).args([server.base_url.as_str(), "learned"]).env("NO_PROXY", "127.0.0.1");
    stdout(&python.output().unwrap());

    // A plugin asks it as it asks any other endpoint.
    let chat = format!("judge={{ base_url = {:?}, model = \"learned\" }}", server.base_url);
    let asks = format!("asks={}", built("guests/asks.wasm").display());
    project.write("scored.jsonl", "{\"prompt\": \"?\", \"response\": \"good\"}\n");
    project.succeed(&[
        "score",
        "--plugin",
        &asks,
        "--grant",
        "asks={ chat = [\"judge\"] }",
        "--chat",
        &chat,
        "--data",
        "scored.jsonl",
        "--out",
        "out.jsonl",
    ]);
    assert_eq!(lines(&project.path("out.jsonl"))[0]["reward"], 7.0);
}

#[test]
fn the_clients_of_other_makers_are_served() {
    let folder = tempfile::tempdir().unwrap();
    model(folder.path());
    std::fs::write(folder.path().join("chat_template.jinja"), TOOLS).unwrap();
    let server = Server::start(&["-m", folder.path().to_str().unwrap(), "--name", "org/nonsense"]);
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/dialects_clients.py");
    let mut python = Command::new("python3");
    python.arg(script).args([server.base_url.as_str(), "org/nonsense"]).env("NO_PROXY", "127.0.0.1");
    stdout(&python.output().unwrap());
}

#[test]
fn a_teacher_at_a_server_teaches_as_its_folder_does() {
    let project = Project::new();
    let teacher = project.path("teacher");
    model(&teacher);
    let server = Server::start(&["-m", teacher.to_str().unwrap(), "--name", "teacher"]);
    let config = project.read("train.toml").replace("[train]\n", "[train]\nalgorithm = \"distillation\"\n");
    let endpoint = format!("[chat.other]\nbase_url = {:?}\nmodel = \"teacher\"\n", server.base_url);
    project.write("folder.toml", &config);
    project.write("server.toml", &(config.clone() + &endpoint));
    project.succeed(&[
        "train",
        "-c",
        "folder.toml",
        "--set",
        "log.name=folder",
        "--set",
        "train.reference.path=teacher",
    ]);
    let args = ["train", "-c", "server.toml", "--set", "log.name=server", "--set", "train.reference.chat=other"];
    project.succeed(&args);
    let (folder, served) = (project.metrics("runs/folder"), project.metrics("runs/server"));
    assert_eq!(folder.len(), served.len());
    for (folder, served) in folder.iter().zip(&served).skip(1) {
        for name in ["kl_reward", "loss", "grad_norm", "entropy"] {
            let (one, other) = (folder[name].as_f64().unwrap(), served[name].as_f64().unwrap());
            assert!((one - other).abs() < 1e-3 * one.abs().max(1.0), "{name}: {one} and {other}");
        }
    }
    assert!(served[1]["kl_reward"].as_f64() > Some(0.1), "{:?}", served[1]);
    // No reward is needed, and what is wrong is found before the run.
    let start = config.find("[[reward]]").unwrap();
    let end = config.find("[checkpoint]").unwrap();
    project.write("bare.toml", &(config[..start].to_owned() + &config[end..] + &endpoint));
    let bare = ["train", "-c", "bare.toml", "--set", "log.name=bare", "--set", "train.reference.chat=other"];
    project.succeed(&[&bare[..], &["--set", "train.steps=1"]].concat());
    let error = |setting: &str| stderr(&project.run(&[&bare[..], &["--dry-run", "--set", setting]].concat()));
    for (setting, says) in [
        ("chat.other.base_url=\"http://127.0.0.1:9/v1\"", "train.reference.chat: "),
        ("chat.other.model=\"another\"", "the model `another` is not served here"),
        ("train.reference.chat=\"nobody\"", "train.reference.chat: there is no [chat.nobody]"),
        ("rollout.temperature=0.7", "rollout.temperature must be 1 with train.reference.chat"),
    ] {
        let error = error(setting);
        assert!(error.contains(says), "no {says:?} in {error}");
    }
}

#[test]
fn a_signal_ends_the_server_in_the_middle_of_an_answer() {
    let folder = tempfile::tempdir().unwrap();
    model(folder.path());
    let mut server = Server::start(&["-m", folder.path().to_str().unwrap()]);
    let address = server.base_url.trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let mut stream = TcpStream::connect(&address).unwrap();
    let body = r#"{"prompt": "a", "max_tokens": 500, "ignore_eos": true, "stream": true}"#;
    let head = format!("POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n", body.len());
    stream.write_all((head + body).as_bytes()).unwrap();
    stream.read_exact(&mut [0; 12]).unwrap();
    let ended = Command::new("kill").args(["-TERM", &server.child.id().to_string()]).status().unwrap();
    assert!(ended.success() && server.child.wait().unwrap().success());
    assert!(TcpStream::connect(&address).is_err());
}

#[test]
fn what_cannot_be_served_is_told_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    model(folder.path());
    let dir = folder.path().to_str().unwrap();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let cannot = format!(
        "cannot listen on 127.0.0.1:{port}: Address already in use (os error 98)\nhint: give another --port; 0 takes a free one"
    );
    let no_room = "--cache-memory 1.0 KiB has no room for any response\nhint: give more, or leave it out";
    for (args, says) in
        [(&["--port", &port][..], cannot.as_str()), (&["--port", "0", "--cache-memory", "1KiB"], no_room)]
    {
        let output = gavel(&["serve", "-m", dir]).args(args).output().unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(says), "{error}");
    }
}

#[test]
fn generate_prints_text_or_objects() {
    let folder = tempfile::tempdir().unwrap();
    model(folder.path());
    let dir = folder.path().to_str().unwrap();
    let run = |args: &[&str]| gavel(&["generate", "-m", dir, "--prompt", "Once"]).args(args).output().unwrap();
    let objects = stdout(&run(&["--n", "3", "--max-tokens", "9", "--json", "--seed", "5"]));
    let objects: Vec<Value> = objects.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(objects.len(), 3);
    assert_ne!(objects[0]["text"], objects[1]["text"]);
    for object in &objects {
        let count = |name: &str| object[name].as_array().unwrap().len();
        assert_eq!(count("token_ids"), count("logprobs"));
        assert!(object["finish_reason"] == "stop" || (object["finish_reason"] == "length" && count("token_ids") == 9));
    }
    let text = stdout(&run(&["--max-tokens", "9", "--seed", "5"]));
    assert_eq!(text.strip_suffix('\n').unwrap(), objects[0]["text"].as_str().unwrap());
    let chat = stdout(&run(&["--chat", "--max-tokens", "2", "--temperature", "0", "--logprobs", "--n", "2"]));
    assert!(chat.starts_with("== 1 of 2 (") && chat.contains("\n== 2 of 2 ("), "{chat}");

    for (arg, says) in [
        ("--temperature=-1", "`temperature` must be 0 (greedy) or from 0.001 to 1000, not -1"),
        ("--max-tokens=9999", "a prompt of 4 tokens and `max_tokens` 9999 exceed the model's 1024 positions"),
    ] {
        let output = run(&[arg]);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && error.contains(says), "{error}");
    }
    let output = gavel(&["generate", "-m", "/nowhere", "--prompt", "x"]).output().unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(error.starts_with("error: there is no folder /nowhere\nhint: "), "{error}");
}
