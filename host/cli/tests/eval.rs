//! `gavel eval` as a user runs it: a checkpoint, and models behind endpoints.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![cfg(feature = "train")]

mod project;

use axum::Router;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use project::{Project, built, lines, stderr};
use serde_json::{Map, Value, json};
use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileTypeExt;
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

const KEY: &str = "sk-not-to-be-shown";

/// A server that answers with these statuses in order, then always with the same text. It keeps the requests.
struct Server {
    base_url: String,
    asked: Arc<Mutex<Vec<(HeaderMap, Value)>>>,
    _runtime: Runtime,
}

impl Server {
    fn start(answers: impl IntoIterator<Item = StatusCode>) -> Self {
        let runtime = Runtime::new().unwrap();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let base_url = format!("http://{}/v1", listener.local_addr().unwrap());
        let asked = Arc::<Mutex<Vec<_>>>::default();
        let (answers, seen) = (Arc::new(Mutex::new(answers.into_iter().collect::<VecDeque<_>>())), asked.clone());
        let answer = move |headers: HeaderMap, body: String| {
            seen.lock().unwrap().push((headers, serde_json::from_str(&body).unwrap()));
            let status = answers.lock().unwrap().pop_front().unwrap_or(StatusCode::OK);
            let message = json!({"role": "assistant", "content": "a", "reasoning_content": null});
            let usage = json!({"prompt_tokens": 5, "completion_tokens": 3});
            let body = json!({"choices": [{"message": message, "finish_reason": "stop"}], "usage": usage});
            let text = if status.is_success() { body.to_string() } else { "not now".into() };
            std::future::ready((status, text))
        };
        runtime.spawn(async { axum::serve(listener, Router::new().route("/v1/chat/completions", post(answer))).await });
        Self { base_url, asked, _runtime: runtime }
    }

    fn asked(&self) -> Vec<(HeaderMap, Value)> {
        self.asked.lock().unwrap().clone()
    }
}

/// A project for evaluation: its configuration has no model and no training data, and adds `table`.
fn evaluated(table: &str) -> Project {
    let project = Project::new();
    let format = built("plugins/format.wasm");
    let reward =
        format!("[[reward]]\nname = \"letter\"\npath = {format:?}\nparams = {{ pattern = '(?s).*[a-z].*' }}\n");
    project.write("eval.toml", &format!("[rollout]\nmax_tokens = 8\n{reward}{table}\n"));
    project
}

fn metrics(output: &Output) -> Map<String, Value> {
    serde_json::from_slice(&output.stdout).unwrap()
}

fn fails(project: &Project, args: &[&str], says: &str) {
    let output = project.command(args).env("GAVEL_TEST_EVAL_KEY", KEY).output().unwrap();
    let error = stderr(&output);
    assert!(output.status.code() == Some(2) && error.contains(says), "{args:?}: {error}");
    assert!(!error.contains(KEY), "{error}");
}

#[test]
fn answers_are_saved_as_rows_that_score_reads_again() {
    let project = Project::new();
    let others = (0..3).map(|number| format!("{{\"prompt\": \"Say {number}\", \"deep\": {{\"n\": {number}}}}}\n"));
    project.write("others.jsonl", &others.collect::<String>());
    let eval = |more: &[&str]| {
        let data = ["--data", "validation.jsonl", "--data", "others.jsonl", "--samples", "3"];
        project.succeed(&[&["eval", "-c", "train.toml"][..], &data, more].concat())
    };
    let table = String::from_utf8(eval(&["--out", "answers.jsonl"]).stdout).unwrap();
    let rows: Vec<&str> = table.lines().take(3).collect();
    let header: Vec<&str> = rows[0].split_whitespace().collect();
    assert_eq!(header, ["data", "source", "rows", "mean@3", "pass@1", "pass@2", "pass@3", "best@3"], "{table}");
    assert!(rows[1].trim().starts_with("letters") && rows[2].trim().starts_with("unknown"), "{table}");
    assert!(table.contains("  letter: 27 scored") && !table.contains("val/letters/"), "{table}");

    let answers = lines(&project.path("answers.jsonl"));
    assert_eq!(answers.len(), 27);
    let first = lines(&project.path("validation.jsonl"))[0].clone();
    for name in ["data_source", "prompt", "reward_model", "extra_info"] {
        assert_eq!(answers[0][name], first[name], "{name}");
    }
    let mean = answers.iter().map(|answer| answer["reward"].as_f64().unwrap()).sum::<f64>() / 27.0;
    let found = metrics(&eval(&["--json", "--out", "answers.parquet"]));
    assert!((found["val/reward/mean"].as_f64().unwrap() - mean).abs() < 1e-12);
    let accuracy = table.lines().find(|line| line.starts_with("  val/accuracy ")).unwrap();
    let expected = format!("{:.4}", found["val/accuracy"].as_f64().unwrap());
    assert_eq!(accuracy.split_whitespace().last(), Some(expected.as_str()));

    // What is no file is written to, and stays what it is.
    let pipe = project.path("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    eval(&["--out", "pipe"]);
    assert_eq!(reader.join().unwrap().lines().count(), answers.len());
    assert!(std::fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());

    // The same plugin gives the same verdicts, whichever file the answers are in.
    for data in ["answers.jsonl", "answers.parquet"] {
        let letter = format!("letter={}", built("plugins/format.wasm").display());
        let params = r#"letter={"pattern": "(?s).*[a-z].*"}"#;
        project.succeed(&["score", "--plugin", &letter, "--params", params, "--data", data, "--out", "again.jsonl"]);
        let again = lines(&project.path("again.jsonl"));
        let rewards = |rows: &[Map<String, Value>]| rows.iter().map(|row| row["reward"].clone()).collect::<Vec<_>>();
        assert_eq!(rewards(&again), rewards(&answers), "{data}");
        assert_eq!(again[26]["id"], "validation/row-8", "{data}");
    }

    let says = "  no score of `letter` reached 1, which counts as a pass; the highest is 0\n";
    assert!(!table.contains("no score of"), "{table}");
    let table = String::from_utf8(eval(&["--set", "reward.letter.params.pattern=never 123"]).stdout).unwrap();
    assert!(table.ends_with(says), "{table}");

    // At another temperature, the one answer is not greedy any more.
    let one = |more: &[&str]| metrics(&project.succeed(&[&["eval", "-c", "train.toml", "--json"][..], more].concat()));
    let names: Vec<String> = one(&["--temperature", "0.7"]).keys().cloned().collect();
    assert_eq!(names, one(&[]).keys().cloned().collect::<Vec<_>>());
    fails(&project, &["eval", "-c", "train.toml", "--temperature=-1"], "`temperature` must be 0 (greedy) or from");
    fails(
        &project,
        &["eval", "-c", "train.toml", "--samples", "0"],
        "data.validation_samples must be at least 1, not 0",
    );
    fails(&project, &["eval", "-c", "train.toml", "--out", "answers.csv"], "must end in .jsonl or .parquet");
    fails(&project, &["eval", "-c", "train.toml", "--out", "validation.jsonl"], "is the dataset that is evaluated on");
    fails(&project, &["eval", "-c", "train.toml", "--data", "none.jsonl"], "cannot open dataset none.jsonl");
}

#[test]
fn an_evaluation_without_a_reward_fails_before_a_server_is_asked() {
    let project = evaluated("");
    let exact = built("plugins/exact-answer.wasm");
    let reward = format!("[[reward]]\nname = \"exact\"\npath = {exact:?}\n");
    let text = project.read("eval.toml");
    project.write("eval.toml", &text.replace("[[reward]]", &format!("{reward}[[reward]]")));
    project.write("none.jsonl", "{\"prompt\": \"Say 1\"}\n");
    let server = Server::start([]);
    let endpoint = ["--endpoint", &server.base_url, "--endpoint-model", "m"];
    let eval = [&["eval", "-c", "eval.toml", "--data", "none.jsonl"][..], &endpoint].concat();
    fails(
        &project,
        &eval,
        "the reward `exact` was tried with the response \"I do not know.\" and failed on 1 of 1 row of none.jsonl",
    );
    assert_eq!(server.asked().len(), 0);

    let out = ["--out", "answers.jsonl", "--set", "train.max_failure_rate=1"];
    fails(&project, &[&eval[..], &out].concat(), "error: no answer has a reward; the first: ");
    assert_eq!((server.asked().len(), lines(&project.path("answers.jsonl")).len()), (1, 1));
}

/// `gavel serve`, which ends with the test.
struct Serve(Child, String);

impl Serve {
    fn start(project: &Project, model: &str) -> Self {
        let mut serve = project.command(&["serve", "--port", "0", "--name", "served", "-m", model]);
        let mut child = serve.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        Self(child, line.trim().rsplit(' ').next().unwrap().to_owned())
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // The server may have ended already.
        let _ = self.0.kill();
        self.0.wait().unwrap();
    }
}

#[test]
fn a_served_checkpoint_answers_as_the_checkpoint_does() {
    let project = evaluated("");
    project.succeed(&["sft", "-c", "sft.toml"]);
    let checkpoint = "runs/run/checkpoints/step-000006";
    let served = Serve::start(&project, checkpoint);
    let eval = ["eval", "-c", "eval.toml", "--data", "validation.jsonl", "--json"];
    let local = project.succeed(&[&eval[..], &["--checkpoint", checkpoint, "--out", "local.jsonl"]].concat());
    let endpoint = ["--endpoint", &served.1, "--endpoint-model", "served", "--out", "asked.jsonl"];
    let asked = project.succeed(&[&eval[..], &endpoint].concat());
    for name in ["val/accuracy", "val/reward/mean", "val/letters/mean@1"] {
        assert_eq!(metrics(&asked)[name], metrics(&local)[name], "{name}");
    }
    let [local, asked] = ["local.jsonl", "asked.jsonl"].map(|name| lines(&project.path(name)));
    assert_eq!(asked.len(), 6);
    for (asked, local) in asked.iter().zip(&local) {
        assert_eq!((&asked["response"], &asked["id"]), (&local["response"], &local["id"]));
    }
    // A sampled answer follows from the seed.
    let again = || metrics(&project.succeed(&[&eval[..], &["--samples", "3"], &endpoint[..4]].concat()));
    let (first, second) = (again(), again());
    assert_eq!(first["val/letters/mean@3"], second["val/letters/mean@3"]);
    assert!(first.contains_key("val/letters/pass@3"));
    let model = ["--endpoint", &served.1, "--endpoint-model", "other"];
    fails(&project, &[&eval[..], &model].concat(), "404");
}

#[test]
fn an_endpoint_is_asked_as_the_configuration_says() {
    let server = Server::start([StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS]);
    let chat = format!(
        "[chat.judged]\nbase_url = {:?}\nmodel = \"m\"\napi_key_env = \"GAVEL_TEST_EVAL_KEY\"\noptions = {{ top_p = 0.5, max_completion_tokens = 9, chat_template_kwargs = {{ effort = \"low\", enable_thinking = true }} }}",
        server.base_url
    );
    let project = evaluated(&chat);
    let rows = project.read("validation.jsonl");
    let kwargs = "{\"chat_template_kwargs\":{\"enable_thinking\":false},";
    project.write("validation.jsonl", &rows.lines().map(|row| format!("{kwargs}{}\n", &row[1..])).collect::<String>());
    let args = ["eval", "-c", "eval.toml", "--data", "validation.jsonl", "-n", "2", "--endpoint", "judged", "--json"];
    let more = ["--set", "validation.temperature=0.7", "--set", "rollout.stop=['b']", "--set", "rollout.top_p=0.9"];
    let output = project.command(&[&args[..], &more].concat()).env("GAVEL_TEST_EVAL_KEY", KEY).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let found = metrics(&output);
    assert_eq!((&found["val/letters/pass@2"], &found["val/response_length/mean"]), (&json!(1.0), &json!(3.0)));
    // Two of them were asked again.
    let asked = server.asked();
    assert_eq!(asked.len(), 14);
    for (headers, body) in &asked {
        assert_eq!(headers["authorization"], format!("Bearer {KEY}"));
        assert_eq!((&body["model"], &body["temperature"], body.get("stop")), (&json!("m"), &json!(0.7), None));
        assert_eq!((&body["top_p"], &body["max_completion_tokens"]), (&json!(0.5), &json!(9)));
        assert!(body.get("max_tokens").is_none() && body["seed"].is_u64());
        assert_eq!(body["messages"][0]["role"], "user");
        // The row's variables win over the endpoint's variables.
        assert_eq!(body["chat_template_kwargs"], json!({"effort": "low", "enable_thinking": false}));
    }
    let mut seeds: Vec<u64> = asked.iter().map(|(_, body)| body["seed"].as_u64().unwrap()).collect();
    seeds.sort_unstable();
    seeds.dedup();
    assert_eq!(seeds.len(), 12, "each answer has a seed of its own");
    assert!(!String::from_utf8_lossy(&output.stdout).contains(KEY) && !stderr(&output).contains(KEY));
}

#[test]
fn how_far_it_is_shows_on_a_terminal_alone() {
    let server = Server::start([]);
    let project = evaluated("");
    let endpoint = ["--endpoint", server.base_url.as_str(), "--endpoint-model", "m"];
    let args = [&["eval", "-c", "eval.toml", "--data", "validation.jsonl"][..], &endpoint].concat();
    assert!(!stderr(&project.succeed(&args)).contains("answers"));
    // It gives the command a terminal, whose output is its own.
    let gavel = format!("{} {}", env!("CARGO_BIN_EXE_gavel"), args.join(" "));
    let mut script = Command::new("script");
    script
        .args(["-qec", &gavel, "/dev/null"])
        .current_dir(project.path(""))
        .env("NO_PROXY", "127.0.0.1")
        .env("TERM", "xterm");
    let output = script.stdin(Stdio::null()).output().expect("script is needed, of util-linux");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && shown.contains("/6 answers, "), "{shown}");
}

#[test]
fn an_answer_that_does_not_come_is_no_zero_and_others_do_not_wait_for_it() {
    // Two requests are sent at once: the first that fails is sent after an answer to another was read.
    let failing = [&[StatusCode::OK; 2][..], &[StatusCode::BAD_REQUEST; 10]].concat();
    let (server, gone) = (Server::start([StatusCode::OK, StatusCode::BAD_REQUEST]), Server::start(failing));
    let table = |server: &Server, name: &str| {
        format!("[chat.{name}]\nbase_url = {:?}\nmodel = \"m\"\nconcurrency = 2\n", server.base_url)
    };
    let judger = format!("[[reward]]\nname = \"short\"\npath = {:?}\n", built("guests/shortest.wasm"));
    let project = evaluated(&format!("{judger}{}{}", table(&server, "one"), table(&gone, "gone")));
    let eval = ["eval", "-c", "eval.toml", "--data", "validation.jsonl", "-n", "2", "--out", "answers.jsonl", "--json"];
    let output = project.succeed(&[&eval[..], &["--endpoint", "one"]].concat());
    let says = "1 of 12 samples have no response; the first: the endpoint `http://127.0.0.1:";
    assert!(stderr(&output).contains(says), "{}", stderr(&output));
    let answers = lines(&project.path("answers.jsonl"));
    let (missing, there): (Vec<_>, Vec<_>) = answers.iter().partition(|answer| answer["response"].is_null());
    assert_eq!((missing.len(), there.len()), (1, 11));
    assert_eq!((&missing[0]["outcome"], &missing[0]["reward"]), (&json!("unavailable"), &Value::Null));
    assert!(missing[0]["reason"].as_str().unwrap().contains("it answered 400 Bad Request: not now"));
    assert!(there.iter().all(|answer| answer["reward"] == 2.0), "{there:?}");
    assert_eq!(
        (&metrics(&output)["val/letters/mean@2"], &metrics(&output)["val/unanswered"]),
        (&json!(2.0), &json!(1))
    );

    let says = "2 requests in a row failed; the last: the endpoint `http://127.0.0.1:";
    fails(&project, &[&eval[..], &["--endpoint", "gone"]].concat(), says);
}

#[test]
fn an_endpoint_that_cannot_be_asked_says_where_and_why() {
    let (refusing, busy) =
        (Server::start([StatusCode::UNAUTHORIZED; 99]), Server::start([StatusCode::SERVICE_UNAVAILABLE; 99]));
    let hung = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let table = |name: &str, base_url: &str, more: &str| {
        format!("[chat.{name}]\nbase_url = {base_url:?}\nmodel = \"m\"\n{more}\n")
    };
    let hung_url = format!("http://{}/v1", hung.local_addr().unwrap());
    let project = evaluated(
        &[
            table("refused", "http://127.0.0.1:1/v1", "retries = 0"),
            table("busy", &busy.base_url, "retries = 1"),
            table("hung", &hung_url, "timeout = \"300ms\"\nretries = 0"),
        ]
        .concat(),
    );
    let eval = ["eval", "-c", "eval.toml", "--data", "validation.jsonl"];
    let fails = |args: &[&str], says: &str| fails(&project, &[&eval[..], args].concat(), says);
    fails(
        &["--endpoint", "refused"],
        "the endpoint `http://127.0.0.1:1/v1`: http://127.0.0.1:1/v1/chat/completions: Connection",
    );
    fails(&["--endpoint", "refused"], "\nhint: check the address; ");
    let key = ["--endpoint", &refusing.base_url, "--endpoint-model", "m", "--endpoint-key-env", "GAVEL_TEST_EVAL_KEY"];
    fails(&key, "it answered 401 Unauthorized: not now (the key was read from GAVEL_TEST_EVAL_KEY)\nhint: ");
    fails(
        &key[..4],
        "it answered 401 Unauthorized: not now (no api_key_env is set)\nhint: name its model with --endpoint-model",
    );
    fails(&["--endpoint", "busy"], &format!("the endpoint `{}`: it answered 503 Service Unavailable", busy.base_url));
    assert!(busy.asked().len() >= 2);
    fails(
        &["--endpoint", "hung"],
        &format!("the endpoint `{hung_url}`: {hung_url}/chat/completions: no answer in time"),
    );

    fails(
        &["--endpoint", "nobody"],
        "--endpoint nobody is neither an address such as http://127.0.0.1:8000/v1 nor a [chat.NAME] (those are: busy, hung, refused)",
    );
    fails(&["--endpoint", "http://127.0.0.1:1/v1"], "needs a model\nhint: name it with --endpoint-model");
    fails(&["--endpoint", "ftp://x", "--endpoint-model", "m"], "--endpoint: base_url: ");
    let with_key = format!("http://me:{KEY}@127.0.0.1:1/v1");
    fails(&["--endpoint", &with_key], "--endpoint needs a model");
    fails(&["--endpoint", &with_key, "--endpoint-model", "m"], "base_url: a key does not belong here");
    fails(
        &[&key[..5], &["GAVEL_TEST_NO_SUCH_KEY"]].concat(),
        "--endpoint-key-env GAVEL_TEST_NO_SUCH_KEY: the variable is not set",
    );
    fails(&[], "there is no model to evaluate\nhint: name a checkpoint with --checkpoint");
}

#[test]
fn without_a_dataset_there_is_nothing_to_ask() {
    let args = ["eval", "-c", "eval.toml", "--endpoint", "http://127.0.0.1:1/v1", "--endpoint-model", "m"];
    fails(&evaluated(""), &args, "there is no data.validation to evaluate on\nhint: name datasets with --data");
}
