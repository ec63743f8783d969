//! Reward models of a run: a file is scored, a policy is trained, and the verdicts are replayed without the model.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use gavel_data::Message;
use gavel_policy::{Device, Model, ModelConfig, Tensor};
use gavel_text::{RenderOptions, TextModel};
use project::{Project, lines, stderr};
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// Saves a random model with this head as the folder `name`.
fn save(project: &Project, name: &str, architecture: &str, more: Value) -> Model {
    let mut sizes = json!({"architectures": [architecture], "vocab_size": 259, "hidden_size": 32, "intermediate_size": 32,
        "num_hidden_layers": 2, "num_attention_heads": 2, "max_position_embeddings": 256});
    sizes.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    let config: ModelConfig = serde_json::from_value(sizes).unwrap();
    let model = Model::random(config, 5, Device::Cpu).unwrap();
    std::fs::create_dir_all(project.path(name)).unwrap();
    TextModel::byte_level().save(&project.path(name)).unwrap();
    model.save(&project.path(name)).unwrap();
    model
}

/// The score of a conversation, computed alone.
fn alone(model: &Model, conversation: &[Message]) -> f64 {
    let text = TextModel::byte_level();
    let ids = text.prompt_ids_with(conversation, &RenderOptions::default()).unwrap();
    let ids: Vec<i64> = ids.into_iter().map(i64::from).collect();
    let scores = model.scores(&Tensor::from_slice(&ids).unsqueeze(0), &[ids.len()]).unwrap();
    scores.double_value(&[0, 0])
}

const CLASSIFIER: &str = "Qwen2ForSequenceClassification";

#[test]
fn a_file_is_scored_by_a_reward_model_and_again_without_it() {
    let project = Project::empty();
    let model = save(&project, "rm", CLASSIFIER, json!({"num_labels": 1}));
    let responses: Vec<String> = (0..20).map(|number| "word ".repeat(number * 2)).collect();
    let row = |response: &String| json!({"prompt": "Say it.", "response": response}).to_string() + "\n";
    project.write("rows.jsonl", &responses.iter().map(row).collect::<String>());
    let scoring = ["score", "--reward-model", "quality=rm", "--data", "rows.jsonl", "--out", "out.jsonl"];
    project.succeed(&[&scoring[..], &["--record", "kept"]].concat());
    let rewards = |file: &str| -> Vec<f64> {
        lines(&project.path(file)).iter().map(|line| line["reward"].as_f64().unwrap()).collect()
    };
    let found = rewards("out.jsonl");
    for (response, found) in responses.iter().zip(&found) {
        let conversation =
            [Message::new(gavel_data::Role::User, "Say it."), Message::new(gavel_data::Role::Assistant, response)];
        let expected = alone(&model, &conversation);
        assert!((found - expected).abs() < 1e-5, "{response:?}: {found} {expected}");
    }
    assert!(found.iter().any(|score| (score - found[0]).abs() > 1e-3), "{found:?}");
    std::fs::remove_dir_all(project.path("rm")).unwrap();
    project.succeed(&["score", "--replay", "kept", "--out", "again.jsonl"]);
    assert_eq!(rewards("again.jsonl"), found);
}

#[test]
fn a_policy_is_trained_on_a_reward_model_and_its_verdicts_replay() {
    let project = Project::new();
    save(&project, "rm", CLASSIFIER, json!({"num_labels": 1}));
    let reward = "[[reward]]\nname = \"liked\"\nreward_model = \"quality\"\nscale = 2.0\nclip = [-3.0, 3.0]\n[reward_model.quality]\npath = \"rm\"\n";
    project.write("train.toml", &project.read("train.toml").replace("[checkpoint]", &format!("{reward}[checkpoint]")));
    project.succeed(&["train", "-c", "train.toml", "--set", "log.name=run", "--set", "train.steps=2"]);
    let metrics = project.metrics("runs/run");
    assert_eq!(metrics[1]["outcome/liked/scored"], json!(16), "{:?}", metrics[1]);
    assert!(metrics[1]["reward/liked/mean"].as_f64().unwrap() != 0.0, "{:?}", metrics[1]);
    // It takes turns on the policy's device, and the step reports the time.
    let timed = &lines(&project.path("runs/run/metrics.jsonl"))[1];
    let number = |name: &str| timed.get(name).and_then(Value::as_f64);
    assert!(number("perf/reward_model/quality/scored") > Some(0.0), "{timed:?}");
    assert!(number("time/reward_model/quality/computing") > Some(0.0), "{timed:?}");
    assert!(number("time/policy_waits_for_reward_models").is_some(), "{timed:?}");
    let dry = String::from_utf8(project.succeed(&["train", "-c", "train.toml", "--dry-run"]).stdout).unwrap();
    assert!(
        dry.contains("always: weights of the reward model quality: ") && dry.contains("in scoring: a batch of"),
        "{dry}"
    );
    std::fs::remove_dir_all(project.path("rm")).unwrap();
    let output = project.succeed(&["replay", "runs/run", "--json"]);
    let found: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(found["different"], json!(0), "{found}");
}

#[test]
fn a_mistake_is_found_before_the_run_and_named() {
    let project = Project::new();
    save(&project, "policy", "Qwen2ForCausalLM", json!({}));
    save(&project, "many", CLASSIFIER, json!({"num_labels": 3}));
    save(&project, "tokens", "Qwen2ForTokenClassification", json!({"num_labels": 2}));
    save(&project, "small", CLASSIFIER, json!({"num_labels": 1, "vocab_size": 200}));
    save(&project, "good", CLASSIFIER, json!({"num_labels": 1}));
    project.write("llama.jinja", "{% for m in messages %}<|start_header_id|>{{ m.content }}{% endfor %}");
    project.write("bos.jinja", "{{ bos_token }}{{ messages[0].content }}");
    project.write("broken.jinja", "{% for m in messages %}");
    let rows = json!({"prompt": "a", "response": "b"}).to_string();
    project.write("rows.jsonl", &rows);
    for (model, says) in [
        ("none", ".path: there is no folder none"),
        ("policy", ".path: policy/config.json: `architectures`: it is a language model, which has no score\nhint: "),
        ("many", ".path: many/config.json: `id2label`: there are 3 labels, and a reward model has one"),
        ("tokens", ".path: tokens/config.json: `architectures`: it is a token classifier"),
        ("small", ".path: small/config.json: `vocab_size`: "),
        ("{ path = \"good\", steps = {} }", ".steps: good/config.json: a sequence classifier has no values of steps"),
        ("{ path = \"tokens\", steps = { separator = \"\" } }", ".steps.separator must be a text"),
        ("{ path = \"good\", device = \"cuda:7\" }", ".device: cuda:7: "),
        ("{ path = \"good\", device = \"gpu\" }", ".device: gpu: unknown name"),
        ("{ path = \"good\", device = \"cpu\", sleep = true }", ".sleep: the model is on the CPU"),
        ("{ path = \"good\", chat_template = \"none.jinja\" }", ".chat_template: none.jinja: "),
        (
            "{ path = \"good\", chat_template = \"broken.jinja\" }",
            ".chat_template: broken.jinja: the chat template has an error",
        ),
        (
            "{ path = \"good\", chat_template = \"llama.jinja\" }",
            ".chat_template: llama.jinja: the chat template: it writes `<|start_header_id|>`",
        ),
        (
            "{ url = \"http://a\", chat_template = \"bos.jinja\" }",
            ".chat_template: the template writes `bos_token`, which has no value here\nhint: set chat_template_kwargs = { bos_token =",
        ),
        ("{ path = \"good\", yes_no = [\"y\", \"n\"] }", ".yes_no: good: the checkpoint is a classifier"),
        ("{ path = \"policy\", yes_no = [\"maybe\", \"b\"] }", ".yes_no: policy: \"maybe\" is 5 tokens"),
        ("{ path = \"good\", retries = 1 }", ": retries is for a reward model with url"),
        ("{ path = \"good\", ranks = [1] }", ".ranks: it is for a run in several ranks"),
        ("{ path = \"good\", ranks = [1, 0, 1] }", ".ranks: rank 1 is named twice"),
        ("{ path = \"good\", ranks = [1], timeout = \"0s\" }", ".timeout: it and deadline must be longer than 0"),
        ("{ path = \"good\", ranks = [1], protocol = \"tei\" }", ": protocol is for a reward model with url"),
        ("{ path = \"tokens\", ranks = [1], steps = {} }", ".steps: a process reward model is loaded by each rank"),
        ("{ url = \"http://a\", ranks = [1] }", " are for a reward model with path"),
        ("{ url = \"http://a\", sleep = true }", " are for a reward model with path"),
        ("{ url = \"http://a\", protocol = \"tei\" }", ".chat_template: a server of the protocol tei reads texts"),
        (
            "{ url = \"http://a\", protocol = \"rerank\", chat_template_kwargs = { day = \"1 May\" } }",
            ".chat_template: a server of the protocol rerank makes a text of the query and the document itself",
        ),
        ("{ url = \"http://a\", on_endpoint_down = \"stop\" }", ".on_endpoint_down: \"stop\" is for [chat.NAME]"),
        ("{ url = [] }", ".url: the list is empty"),
        ("{ url = \"http://user:secret@a\" }", ".url: a key does not belong here"),
        ("http://127.0.0.1:1", ".url: http://127.0.0.1:1/classify: "),
    ] {
        let model = format!("quality={model}");
        let output = project.run(&["score", "--reward-model", &model, "--data", "rows.jsonl", "--out", "out.jsonl"]);
        assert_eq!(output.status.code(), Some(2), "{model}: {}", stderr(&output));
        let error = stderr(&output);
        assert!(error.starts_with("error: reward_model.quality") && error.contains(says), "{model}: {error}");
        assert!(!error.contains("secret"), "{error}");
    }
    let base = project.read("train.toml");
    for (table, says) in [
        ("reward_model = \"quality\"", "grant.reward_model: there is no reward model `quality`"),
        ("reward_model = \"q\"\n[reward_model.q]\npath = \"policy\"\nyes_no = [\"a\", \"a\"]", "reward_model.q.yes_no"),
        ("reward_model = \"q\"\n[reward_model.q]", "reward_model.q: it has neither path nor url"),
        ("scale = 2.0\npath = \"a.wasm\"", "scale, clip and credit are for a reward with reward_model"),
    ] {
        let reward = format!("[[reward]]\nname = \"liked\"\n{table}\n[checkpoint]");
        project.write("wrong.toml", &base.replace("[checkpoint]", &reward));
        let output = project.run(&["train", "-c", "wrong.toml", "--dry-run"]);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(stderr(&output).contains(says), "{table}: {}", stderr(&output));
    }
}

/// A checkpoint of `tests/parity/reward_models.py`.
fn parity(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/parity/reward_models").join(name).canonicalize().unwrap()
}

/// The day that `tests/parity/reward_models.py` gives the chat templates, and the token that a server's does not know.
const DAY: &str = "chat_template_kwargs = { date_string = \"24 Nov 2026\", bos_token = \"<s>\" }";

/// What `model` scores the rows of a checkpoint, by its reward `quality`.
fn scored(project: &Project, model: &str, rows: &Path, more: &[&str]) -> Vec<f64> {
    let (model, rows) = (format!("quality={model}"), rows.to_str().unwrap());
    let scoring = ["score", "--reward-model", &model, "--data", rows, "--out", "out.jsonl"];
    project.succeed(&[&scoring[..], more].concat());
    lines(&project.path("out.jsonl")).iter().map(|line| line["reward"].as_f64().unwrap()).collect()
}

#[test]
fn scores_of_every_family_equal_those_of_transformers() {
    let project = Project::empty();
    for name in ["qwen2", "qwen3", "llama", "mistral", "gemma", "qwen2-pad"] {
        let folder = parity(name);
        let found = scored(&project, &format!("{{ path = {folder:?}, {DAY} }}"), &folder.join("rows.jsonl"), &[]);
        let expected = lines(&folder.join("rows.jsonl"));
        assert_eq!(found.len(), expected.len(), "{name}");
        for (found, row) in found.into_iter().zip(expected) {
            let expected = row["score"].as_f64().unwrap();
            assert!((found - expected).abs() < 2e-4, "{name}: {found} {expected}: {row:?}");
        }
    }
}

#[test]
fn steps_of_a_process_reward_model_equal_those_of_transformers() {
    let (project, folder) = (Project::empty(), parity("qwen2-steps"));
    let rows = folder.join("rows.jsonl");
    let all = |row: &Map<String, Value>| -> Vec<f64> {
        row["steps"].as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect()
    };
    let expected: Vec<Vec<f64>> = lines(&rows).iter().map(all).collect();
    let of = |name: &str, values: &[f64]| match name {
        "min" => values.iter().copied().fold(f64::INFINITY, f64::min),
        "mean" => values.iter().sum::<f64>() / values.len() as f64,
        "last" => values[values.len() - 1],
        _ => values.iter().product(),
    };
    for name in ["min", "mean", "last", "product"] {
        let model = format!("{{ path = {folder:?}, steps = {{ mark = \"<extra_0>\", score = {name:?} }} }}");
        for (found, values) in scored(&project, &model, &rows, &[]).into_iter().zip(&expected) {
            assert!((found - of(name, values)).abs() < 2e-4, "{name}: {found} {values:?}");
        }
    }
    let counted: Vec<f64> = lines(&project.path("out.jsonl"))
        .iter()
        .map(|line| line["plugins"]["quality"]["metrics"]["steps"].as_f64().unwrap())
        .collect();
    assert_eq!(counted, expected.iter().map(|values| values.len() as f64).collect::<Vec<_>>());
}

/// `gavel serve`, which ends with the test.
struct Server {
    child: Child,
    /// `127.0.0.1:PORT`
    address: String,
}

impl Server {
    fn start(project: &Project, folder: &Path) -> Self {
        let mut command = project.command(&["serve", "--port", "0", "-m", folder.to_str().unwrap(), "--name", "judge"]);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit("http://").next().unwrap().trim_end_matches("/v1").to_owned();
        Self { child, address }
    }

    /// The status and the body of an answer.
    fn post(&self, path: &str, body: &Value) -> (u16, Value) {
        let body = body.to_string();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head =
            format!("POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n", body.len());
        stream.write_all((head + &body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), serde_json::from_str(body).unwrap())
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.child.kill();
        self.child.wait().unwrap();
    }
}

#[test]
fn a_served_classifier_gives_the_scores_of_its_folder_and_they_replay() {
    let (project, folder) = (Project::empty(), parity("llama"));
    let rows = folder.join("rows.jsonl");
    let expected = scored(&project, &format!("{{ path = {folder:?}, {DAY} }}"), &rows, &[]);
    let server = Server::start(&project, &folder);
    let url = format!("http://{}", server.address);
    let template = folder.join("chat_template.jinja");
    let tables = [
        format!("{{ url = {url:?}, {DAY} }}"),
        format!("{{ url = {url:?}, {DAY}, model = \"judge\", chat_template = {template:?}, concurrency = 2 }}"),
        format!("{{ url = {url:?}, protocol = \"tei\", chat_template = {template:?}, {DAY} }}"),
        format!("{{ url = [{url:?}, {url:?}], protocol = \"embeddings\", {DAY} }}"),
        format!("{{ url = {url:?}, protocol = \"embeddings\", chat_template = {template:?}, {DAY}, concurrency = 2 }}"),
    ];
    for (number, model) in tables.iter().enumerate() {
        let kept = format!("kept-{number}");
        let found = scored(&project, model, &rows, &["--record", &kept]);
        for (found, expected) in found.iter().zip(&expected) {
            assert!((found - expected).abs() < 1e-5, "{model}: {found} {expected}");
        }
        project.succeed(&["score", "--replay", &kept, "--out", "again.jsonl"]);
        let again: Vec<f64> =
            lines(&project.path("again.jsonl")).iter().map(|line| line["reward"].as_f64().unwrap()).collect();
        assert_eq!(again, found, "{model}");
    }
}

#[test]
fn responses_to_a_prompt_are_scored_by_a_reranker_and_they_replay() {
    let (project, folder) = (Project::empty(), parity("qwen2"));
    let responses = ["4", "The answer is 4.", "No.", ""];
    let row = |response: &&str| json!({"prompt": "2 + 2?", "response": response}).to_string() + "\n";
    project.write("rows.jsonl", &responses.iter().map(row).collect::<String>());
    let rows = project.path("rows.jsonl");
    let expected = scored(&project, &format!("{{ path = {folder:?} }}"), &rows, &[]);
    let server = Server::start(&project, &folder);
    let model = format!("{{ url = \"http://{}\", protocol = \"rerank\", model = \"judge\" }}", server.address);
    let found = scored(&project, &model, &rows, &["--record", "kept"]);
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-5, "{found} {expected}");
    }
    project.succeed(&["score", "--replay", "kept", "--out", "again.jsonl"]);
    let again: Vec<f64> =
        lines(&project.path("again.jsonl")).iter().map(|line| line["reward"].as_f64().unwrap()).collect();
    assert_eq!(again, found);
}

#[test]
fn a_served_classifier_speaks_the_forms_of_others() {
    let (project, folder) = (Project::empty(), parity("qwen2"));
    let server = Server::start(&project, &folder);
    let close = |found: &Value, expected: f64| (found.as_f64().unwrap() - expected).abs() < 1e-5;
    let texts = ["4", "The answer is 4.", "No."];
    let scores: Vec<f64> = texts
        .iter()
        .map(|text| {
            let messages = json!([{"role": "user", "content": "2 + 2?"}, {"role": "assistant", "content": text}]);
            let asked = json!({"model": "judge", "messages": messages, "use_activation": false});
            let (status, found) = server.post("/classify", &asked);
            assert_eq!((status, &found["data"][0]["num_classes"]), (200, &json!(1)), "{found}");
            found["data"][0]["probs"][0].as_f64().unwrap()
        })
        .collect();
    let sigmoid = |score: f64| 1.0 / (1.0 + (-score).exp());
    let (_, found) = server.post("/score", &json!({"text_1": "2 + 2?", "text_2": texts}));
    for (number, score) in scores.iter().enumerate() {
        assert!(close(&found["data"][number]["score"], sigmoid(*score)), "{found} {scores:?}");
    }
    let mut order: Vec<usize> = (0..3).collect();
    order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
    let (_, found) =
        server.post("/v1/rerank", &json!({"query": "2 + 2?", "documents": texts, "top_n": 2, "use_activation": false}));
    assert_eq!(found["results"].as_array().unwrap().len(), 2, "{found}");
    for (result, index) in found["results"].as_array().unwrap().iter().zip(&order) {
        assert_eq!(
            (result["index"].as_u64().unwrap() as usize, &result["document"]["text"]),
            (*index, &json!(texts[*index]))
        );
        assert!(close(&result["relevance_score"], scores[*index]), "{found} {scores:?}");
    }
    let (_, found) =
        server.post("/rerank", &json!({"query": "2 + 2?", "texts": texts, "raw_scores": true, "return_text": true}));
    for (result, index) in found.as_array().unwrap().iter().zip(&order) {
        assert_eq!((&result["index"], &result["text"]), (&json!(index), &json!(texts[*index])));
        assert!(close(&result["score"], scores[*index]), "{found} {scores:?}");
    }
    let (_, alone) = server.post("/predict", &json!({"inputs": "Hello", "raw_scores": true}));
    let (_, batch) = server.post("/predict", &json!({"inputs": [["Hello"], ["2 + 2?", "4"]], "raw_scores": true}));
    assert_eq!((&alone[0]["label"], &batch[0][0]["score"]), (&json!("LABEL_0"), &alone[0]["score"]));
    assert!(close(&batch[1][0]["score"], scores[0]), "{batch} {scores:?}");
    let (_, plain) = server.post("/classify", &json!({"input": ["Hello", "Bye"], "activation": false}));
    assert!(close(&plain["data"][0]["probs"][0], alone[0]["score"].as_f64().unwrap()), "{plain} {alone}");
    let (_, vectors) = server.post("/v1/embeddings", &json!({"input": ["Bye", "Hello"], "model": "judge"}));
    assert_eq!((&vectors["data"][1]["index"], &vectors["data"][1]["object"]), (&json!(1), &json!("embedding")));
    assert!(close(&vectors["data"][1]["embedding"][0], alone[0]["score"].as_f64().unwrap()), "{vectors} {alone}");
    let (_, bytes) = server.post("/v1/embeddings", &json!({"input": "Hello", "encoding_format": "base64"}));
    assert_eq!(bytes["data"][0]["embedding"].as_str().unwrap().len(), 8, "{bytes}");
    for (path, body, status, says) in [
        ("/v1/embeddings", json!({"input": "a", "dimensions": 8}), 400, "`dimensions`: 8 is not supported"),
        ("/v1/embeddings", json!({"input": "a", "encoding_format": "hex"}), 400, "unknown variant `hex`"),
        ("/classify", json!({"input": "a", "model": "other"}), 404, "`other` is not served here"),
        ("/classify", json!({}), 400, "give either `input` or `messages`"),
        (
            "/classify",
            json!({"input": "a", "truncate_prompt_tokens": 5}),
            400,
            "`truncate_prompt_tokens`: 5 is not supported",
        ),
        (
            "/classify",
            json!({"input": "a", "chat_template_kwargs": {}}),
            400,
            "`chat_template_kwargs` is for `messages`",
        ),
        (
            "/classify",
            json!({"messages": [{"role": "user", "content": "a"}], "chat_template_kwargs": {"messages": []}}),
            400,
            "`messages` is not a variable of the chat template",
        ),
        ("/classify", json!({"input": "a ".repeat(2000)}), 400, " tokens, and the reward model reads at most 512"),
        ("/predict", json!({"inputs": "a", "truncate": true}), 400, "a text is never cut"),
        ("/score", json!({"text_1": ["a", "b"], "text_2": ["a"]}), 400, "`text_1` has 2 texts and `text_2` has 1"),
        ("/v1/chat/completions", json!({}), 404, "a classifier answers /classify"),
    ] {
        let (found, answer) = server.post(path, &body);
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(found == status && message.contains(says), "{path}: {found} {answer}");
    }
}
