//! `gavel serve --rewards`: what each trainer is answered, and what is refused.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod project;

use project::{Project, built, lines, stderr};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// A server that ends with the test, whether or not the test passes.
struct Server {
    child: Option<Child>,
    address: String,
}

impl Server {
    fn start(project: &Project, config: &str) -> Self {
        project.write("rewards.toml", config);
        let mut command = project.command(&["serve", "--rewards", "rewards.toml", "--port", "0"]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().strip_prefix("serving rewards at http://").unwrap_or_default().to_owned();
        let server = Self { child: Some(child), address };
        assert!(!server.address.is_empty(), "{}", server.end().1);
        server
    }

    /// The status of an answer, and its body.
    fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn post(&self, path: &str, body: &Value) -> Value {
        let (status, answer) = self.ask("POST", path, &body.to_string());
        assert_eq!(status, 200, "{answer}");
        serde_json::from_str(&answer).unwrap()
    }

    fn get(&self, path: &str) -> String {
        let (status, answer) = self.ask("GET", path, "");
        assert_eq!(status, 200, "{answer}");
        answer
    }

    /// The status and the message of an error.
    fn error(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let (status, answer) = self.ask(method, path, body);
        let answer: Value = serde_json::from_str(&answer).unwrap();
        (status, answer["error"]["message"].as_str().unwrap().to_owned())
    }

    /// Stops it as a service manager does. Returns whether it succeeded, and what it said.
    fn end(mut self) -> (bool, String) {
        let child = self.child.take().unwrap();
        let stopped = Command::new("kill").arg(child.id().to_string()).status().unwrap();
        assert!(stopped.success());
        let output = child.wait_with_output().unwrap();
        (output.status.success(), stderr(&output))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            // It may have ended already.
            let _ = child.kill();
            child.wait().unwrap();
        }
    }
}

/// An answer for each data source: sums are compared, and whatever a loop says, its reward never ends.
fn rewards() -> String {
    let reward = |name: &str, path: &str, source: &str| {
        format!("[[reward]]\nname = {name:?}\npath = {:?}\ndata_sources = [{source:?}]\n", built(path))
    };
    reward("answer", "plugins/exact-answer.wasm", "sums")
        + &reward("endless", "guests/loops.wasm", "loops")
        + "limits = { cpu = \"200ms\" }\n[columns]\nground_truth = \"expected\"\ndata_source = \"kind\"\n\
           [openrlhf]\nno_score = -1.0\nresponse_ends = [\"<|im_end|>\"]\n"
}

#[test]
fn rows_are_scored_as_by_gavel_score() {
    let project = Project::empty();
    let server = Server::start(&project, &rewards());
    let row =
        |id: &str, kind: &str, response: Value| json!({"id": id, "kind": kind, "expected": "4", "response": response});
    let rows = [
        row("right", "sums", json!("Answer: 4")),
        row("wrong", "sums", json!("Answer: 5")),
        row("endless", "loops", json!("Answer: 5")),
        row("unreadable", "sums", json!(3)),
        row("messages", "sums", json!([{"role": "assistant", "content": "Answer: 4"}])),
    ];
    let outcomes = server.post("/score", &json!({"rows": rows}))["outcomes"].take();
    let said = |outcome: &Value| {
        json!([outcome["id"], outcome["reward"], outcome["outcome"], outcome["plugins"]["answer"]["score"]])
    };
    let all: Vec<Value> = outcomes.as_array().unwrap().iter().map(said).collect();
    assert_eq!(
        json!(all),
        json!([
            ["right", 1.0, "scored", 1.0],
            ["wrong", 0.0, "scored", 0.0],
            ["endless", null, "out-of-budget", null],
            [null, null, "fault", null],
            ["messages", 1.0, "scored", 1.0],
        ])
    );
    let reason = outcomes[3]["reason"].as_str().unwrap();
    assert!(reason.starts_with("row 3: ") && reason.contains("`response`"), "{reason}");

    // The same line as in a file, but for times.
    project.write("rows.jsonl", &format!("{}\n", rows[0]));
    let exact = format!("answer={}", built("plugins/exact-answer.wasm").display());
    project.succeed(&[
        "score",
        "--plugin",
        &exact,
        "--data",
        "rows.jsonl",
        "--out",
        "out.jsonl",
        "--column",
        "ground_truth=expected",
        "--column",
        "data_source=kind",
    ]);
    let without_times = |line: &Value| {
        let mut line = line.clone();
        // The reward that the file was not scored with.
        line.as_object_mut().unwrap().remove("not_called");
        let call = line["plugins"]["answer"].as_object_mut().unwrap();
        for time in ["elapsed_us", "cpu_us"] {
            call.remove(time).unwrap();
        }
        line
    };
    let line = Value::Object(lines(&project.path("out.jsonl")).remove(0));
    assert_eq!(without_times(&outcomes[0]), without_times(&line));

    let (succeeded, said) = server.end();
    assert!(succeeded && said.contains("rows: 3 scored, 1 fault, 1 out-of-budget"), "{said}");
    assert!(said.contains("rows without a score: 2; for OpenRLHF each counted as -1"), "{said}");
}

#[test]
fn trainers_are_answered_in_their_protocols() {
    let project = Project::empty();
    let server = Server::start(&project, &rewards());

    // NeMo-Gym
    assert_eq!(server.post("/seed_session", &json!({"session_id": "a"})), json!({}));
    let session = json!({"resources_session_id": "s", "episode_id": {"rollout_id": "r", "attempt": 0}});
    for path in ["/seed_session", "/close_session"] {
        assert_eq!(server.post(path, &session), json!({"resources_session_id": "s"}));
    }
    assert_eq!(server.get("/reverify_mode"), "\"stateless\"");
    let rollout = |kind: &str, text: &str| {
        json!({
            "responses_create_params": {"input": [{"role": "user", "content": "2 + 2?"}], "temperature": 1.0},
            "response": {"id": "resp_1", "output": [
                {"type": "reasoning", "summary": []},
                {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text, "annotations": []}]},
            ]},
            "kind": kind, "expected": "4", "verifier_metadata": {"level": 3},
        })
    };
    let asked = rollout("sums", "So it is.\nAnswer: 4");
    let verified = server.post("/verify", &asked);
    let mut expected = asked.clone();
    expected["reward"] = json!(1.0);
    expected["mask_sample"] = json!(false);
    expected["reward_components"] = json!({"answer": 1.0});
    assert_eq!(verified, expected);
    let endless = server.post("/verify", &rollout("loops", "Answer: 5"));
    assert_eq!(
        json!([endless["reward"], endless["mask_sample"], endless["failure_kind"]]),
        json!([0.0, true, "gavel:out_of_budget"])
    );
    assert_eq!((&endless["reward_components"], &endless["_ng_failure_class"]), (&json!({}), &Value::Null));
    assert!(endless["failure_reason"].as_str().unwrap().contains("cpu"), "{endless}");
    // A row that the reward cannot judge is no rollout with the reward 0.
    let mut unknown = rollout("sums", "Answer: 4");
    unknown["expected"] = Value::Null;
    let unknown = server.post("/verify", &unknown);
    assert_eq!(
        json!([unknown["mask_sample"], unknown["failure_kind"], unknown["_ng_failure_class"]]),
        json!([true, "verifier_error", null])
    );
    // A response without a word is an answer.
    let mut silent = rollout("sums", "");
    silent["response"]["output"] = json!([{"type": "reasoning", "summary": []}]);
    let silent = server.post("/verify", &silent);
    assert_eq!(json!([silent["reward"], silent["mask_sample"]]), json!([0.0, false]));
    let (status, what) = server.error("POST", "/verify", r#"{"response": {"output": "…"}}"#);
    assert_eq!((status, what.as_str()), (400, "the body has no `responses_create_params`"));

    drop(server);
    // OpenRLHF names no data source.
    let server = Server::start(&project, &rewards().replace("data_sources = [\"sums\"]\n", ""));
    let body = json!({
        "query": ["<|user|>2 + 2?<|assistant|>Answer: 4<|im_end|>", "2 + 2?Answer: 5", "<bos>2 + 2?Answer: 4"],
        "prompts": ["<|user|>2 + 2?<|assistant|>", "2 + 2?", "2 + 2?"],
        "labels": ["4", "4", "4"],
    });
    assert_eq!(
        server.post("/get_reward", &body),
        json!({
            "rewards": [1.0, 0.0, -1.0],
            "scores": [1.0, 0.0, -1.0],
            "extra_logs": {
                "gavel_scored": [1.0, 1.0, 0.0],
                "gavel_abstained": [0.0, 0.0, 0.0],
                "gavel_fault": [0.0, 0.0, 1.0],
                "gavel_out_of_budget": [0.0, 0.0, 0.0],
                "gavel_unavailable": [0.0, 0.0, 0.0],
            },
        })
    );
    let short = json!({"query": ["a", "b"], "prompts": ["a"], "labels": ["4"]});
    let (status, what) = server.error("POST", "/get_reward", &short.to_string());
    assert_eq!((status, what.as_str()), (400, "`query`, `prompts` and `labels` have 2, 1 and 1 rows"));
}

#[test]
fn the_calls_of_a_client_that_goes_end() {
    let project = Project::empty();
    let config =
        format!("[[reward]]\npath = {:?}\n[limits]\ncpu = \"50m\"\ntimeout = \"50m\"\n", built("guests/loops.wasm"));
    let server = Server::start(&project, &config);
    let running = |rows: u32| {
        let line = format!("\ngavel_rows_running {rows}\n");
        let is_seen = || {
            (0..6000).any(|_| {
                std::thread::sleep(Duration::from_millis(10));
                server.get("/metrics").contains(&line)
            })
        };
        assert!(is_seen(), "{}", server.get("/metrics"));
    };
    let body = json!({"rows": [{"response": "Answer: 5", "ground_truth": "4"}]}).to_string();
    let mut client = TcpStream::connect(&server.address).unwrap();
    write!(client, "POST /score HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n{body}", body.len()).unwrap();
    running(1);
    drop(client);
    running(0);
}

#[test]
fn a_service_describes_itself_and_refuses_what_it_does_not_know() {
    let project = Project::empty();
    let judger = format!("[[reward]]\npath = {:?}\n", built("guests/shortest.wasm"));
    let server = Server::start(&project, &judger);
    // Consecutive rows with the same id are a group.
    let row = |id: &str, response: &str| json!({"id": id, "response": response});
    let rows = json!({"rows": [row("a", "long"), row("a", "x"), row("b", "long")]});
    let outcomes = server.post("/score", &rows);
    let scores: Vec<&Value> = (0..3).map(|at| &outcomes["outcomes"][at]["reward"]).collect();
    assert_eq!(json!(scores), json!([0.0, 1.0, 1.0]));
    for path in ["/verify", "/get_reward"] {
        let (status, what) = server.error("POST", path, "{}");
        assert!(status == 400 && what.contains("judges whole groups") && what.contains("/score"), "{what}");
    }

    assert_eq!(server.get("/health"), r#"{"status":"ok"}"#);
    let about: Value = serde_json::from_str(&server.get("/rewards")).unwrap();
    assert_eq!(json!([about["rewards"][0]["name"], about["rewards"][0]["weight"]]), json!(["shortest", 1.0]));
    let metrics = server.get("/metrics");
    for line in ["gavel_rows_total{outcome=\"scored\"} 3", "gavel_rows_running 0", "gavel_row_duration_seconds_count 3"]
    {
        assert!(metrics.contains(line), "{metrics}");
    }
    // Each path that is described is there.
    let description: Value = serde_json::from_str(&server.get("/openapi.json")).unwrap();
    assert_eq!(description["info"]["version"], env!("CARGO_PKG_VERSION"));
    let paths = description["paths"].as_object().unwrap();
    assert_eq!(paths.len(), 10);
    for (path, methods) in paths {
        for method in methods.as_object().unwrap().keys() {
            let (status, answer) = server.ask(&method.to_uppercase(), path, "{}");
            assert!(![404, 405, 500].contains(&status), "{method} {path}: {answer}");
        }
    }

    for (method, path, body, status, says) in [
        ("GET", "/", "", 404, "there is no such path"),
        ("GET", "/score", "", 405, "use POST to score"),
        ("POST", "/score", "{\"rows\":", 400, "the body: EOF while parsing"),
        ("POST", "/score", "{\"rows\": [], \"row\": 1}", 400, "unknown field `row`"),
        ("POST", "/score", "{\"rows\": [3]}", 400, "invalid type"),
    ] {
        let (got, what) = server.error(method, path, body);
        assert!(got == status && what.contains(says), "{method} {path}: {got} {what}");
    }
    let many = json!({"rows": vec![json!({}); 65_537]});
    let (status, what) = server.error("POST", "/score", &many.to_string());
    assert_eq!((status, what.as_str()), (413, "a request may have 65536 rows, not 65537"));
}

#[test]
fn a_wrong_configuration_names_what_is_wrong() {
    let project = Project::empty();
    let exact = built("plugins/exact-answer.wasm");
    for (config, says) in [
        ("", "rewards.toml: there is no reward"),
        ("[[reward]]\npath = \"missing.wasm\"\n", "missing.wasm"),
        (&format!("[[reward]]\npath = {exact:?}\nwieght = 2\n"), "unknown field `wieght`"),
        (&format!("[openrlhf]\nno_score = nan\n[[reward]]\npath = {exact:?}\n"), "openrlhf.no_score must be finite"),
        (&format!("[openrlhf]\nnone = 1\n[[reward]]\npath = {exact:?}\n"), "[openrlhf]: unknown field `none`"),
        ("[[reward]\n", "rewards.toml: TOML parse error at line 1"),
    ] {
        project.write("rewards.toml", config);
        let output = project.run(&["serve", "--rewards", "rewards.toml", "--port", "0"]);
        let said = stderr(&output);
        assert!(output.status.code() == Some(2) && said.contains(says), "{config}: {said}");
    }
    let output = project.run(&["serve", "--rewards", "none.toml", "--port", "0"]);
    assert!(stderr(&output).contains("cannot read none.toml"), "{}", stderr(&output));
}
