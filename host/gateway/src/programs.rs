//! Programs that answer, fail, hang, print too much or leave processes running.

use crate::gateway::{Gateway, GatewayAddress};
use crate::program::{ProgramAgent, ProgramSource, ProgramSpec};
use crate::program_episode::ProgramEpisode;
use crate::scripted::Scripted;
use axum::routing::post;
use axum::{Json, Router};
use gavel_agent::{EpisodeLimits, EpisodeProgress, History, LeftOut, OnToolFailure, SHOWN_VARIABLES, ToolLimits};
use gavel_data::{FinishReason, RolloutFaultKind, Sample, Task};
use serde_json::{Map, Value, json};
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

/// A program that asks twice with what it was given, in Python's standard library.
const ASKS: &str = r#"
import json, os, sys, urllib.request
task = json.load(sys.stdin)
assert task == json.load(open(os.environ["GAVEL_TASK_FILE"]))
messages = task["prompt"]
def ask():
    body = json.dumps({"model": os.environ["GAVEL_MODEL"], "messages": messages}).encode()
    headers = {"authorization": "Bearer " + os.environ["OPENAI_API_KEY"], "content-type": "application/json"}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request) as answer:
        message = json.load(answer)["choices"][0]["message"]
    messages.append(message)
    return message["content"]
said = ask()
messages.append({"role": "user", "content": "Again: " + task["settings"]["hint"]})
said += ask()
"#;

const SECRET: &str = "PLANTED-REFERENCE-8c1f";

fn task() -> Arc<Task> {
    let row = json!({
        "prompt": [{"role": "user", "content": "Go."}], "data_source": "tests", "answer": SECRET, "other": [SECRET],
        "reward_model": {"ground_truth": SECRET},
        "extra_info": {"index": 3, "solution": SECRET, "agent_kwargs": {"hint": "softly"}},
    });
    Arc::new(Task::from_row(serde_json::from_str(&row.to_string()).unwrap(), 0, "train").unwrap())
}

struct Played {
    sample: Sample,
    policy: Arc<Scripted>,
}

async fn play(source: ProgramSource, deadline: Duration, max_turns: usize) -> Played {
    let gateway = Gateway::new(GatewayAddress { address: "127.0.0.1:0".parse().unwrap(), url: None });
    let params = json!({"style": "brief"}).as_object().unwrap().clone();
    let table = "agent".to_owned();
    let spec = ProgramSpec { table, source, params, output: 100_000, concurrency: NonZeroUsize::MIN };
    let tools = ToolLimits {
        max_parallel_calls: 1,
        max_output_tokens: 1,
        left_out: LeftOut::default(),
        on_failure: OnToolFailure::default(),
    };
    let policy = Arc::new(Scripted::new(|_| "abc".to_owned()));
    let episode = ProgramEpisode {
        task: task(),
        index: 1,
        max_prompt_tokens: 1_000,
        max_tokens: 1_000,
        seed: 5,
        program_seed: 6,
        agent: Arc::new(ProgramAgent::new(spec, gateway).unwrap()),
        limits: EpisodeLimits { max_turns, deadline, history: History::Exact, tools },
    };
    let sample = episode.play(policy.clone(), &EpisodeProgress::default()).await.unwrap();
    Played { sample, policy }
}

/// Variables of this process that no program sees by itself, and that no shell sets.
fn of_this_process() -> Vec<String> {
    let is_own = |name: &String| {
        !SHOWN_VARIABLES.contains(&name.as_str())
            && !["PWD", "OLDPWD", "SHLVL", "_", "PYENV", "GAVEL", "OPENAI"].iter().any(|other| name.starts_with(other))
    };
    let names: Vec<String> =
        std::env::vars_os().filter_map(|(name, _)| name.into_string().ok()).filter(is_own).collect();
    assert!(names.len() > 1, "there are variables to show and to hide");
    names
}

async fn run(command: &[&str]) -> Played {
    run_with(command, Duration::from_secs(300), 8).await
}

async fn run_with(command: &[&str], deadline: Duration, max_turns: usize) -> Played {
    let command = command.iter().map(|word| (*word).to_owned()).collect();
    play(ProgramSource::Command { command, env: vec![of_this_process()[0].clone()] }, deadline, max_turns).await
}

async fn python(more: &str) -> Played {
    run(&["python3", "-c", &format!("{ASKS}{more}")]).await
}

fn fault(sample: &Sample) -> (FinishReason, RolloutFaultKind, String, String) {
    let row = &sample.trajectories[0];
    let fault = row.report.error.clone().unwrap();
    let printed = fault.diagnosis.map(|diagnosis| diagnosis.stderr).unwrap_or_default();
    (row.finish_reason, row.fault_kind().unwrap(), fault.message, printed)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_asks_twice_makes_one_trajectory() {
    let Played { sample, policy } =
        python("print('thinking')\nprint(json.dumps({'answer': said, 'extra': {'asked': 2}}))").await;
    assert_eq!(sample.answer.as_deref(), Some("abcabc"));
    assert_eq!(sample.extra.as_ref().unwrap().present("asked").unwrap().as_text(), "2");
    let [row] = &sample.trajectories[..] else { panic!("{:?}", sample.trajectories) };
    assert!(row.opening.is_none() && row.report.error.is_none());
    assert_eq!(row.finish_reason, FinishReason::Stop);
    assert!(row.report.printed.starts_with("thinking"), "{}", row.report.printed);
    assert_eq!(row.messages.len(), 3);
    let tokens = row.tokens().unwrap();
    assert_eq!(tokens.loss_mask.iter().filter(|is_drawn| **is_drawn).count(), 2 * 4);
    assert_eq!(policy.written().len(), 2);
    // The second request continues the tokens of the first.
    let [first, second] = &policy.written()[..] else { panic!() };
    assert!(second.prompt.starts_with(&[&first.prompt[..], &first.ids].concat()));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_answer_the_last_text_of_the_policy_is_the_response() {
    let Played { sample, .. } = python("print('done')").await;
    assert_eq!((sample.answer.as_deref(), sample.response().as_str()), (None, "abc"));
    // Dropped history begins another trajectory.
    let Played { sample, .. } = python("messages = messages[:1] + messages[2:]\nask()").await;
    assert_eq!((sample.trajectories.len(), sample.answer.as_deref()), (2, Some("abc")));
    assert!(sample.trajectories[1].opening.is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_that_a_program_sees_has_the_answer_key() {
    let dumps = r#"
import os, sys
text = sys.stdin.read()
print(sorted(os.environ), file=sys.stderr)
found = "PLANTED" + "-REFERENCE" in text + str(dict(os.environ)) + open(os.environ["GAVEL_TASK_FILE"]).read()
sys.exit(text + " found" if found else text + " not there")
"#;
    let Played { sample, .. } = run(&["python3", "-c", dumps]).await;
    let (_, _, message, printed) = fault(&sample);
    assert!(message.ends_with("not there") && !printed.contains(SECRET), "{message}");
    // Nothing else of this process's environment is seen.
    let own = of_this_process();
    for (name, is_seen) in
        [("OPENAI_BASE_URL", true), ("GAVEL_API_KEY", true), (own[0].as_str(), true), (own[1].as_str(), false)]
    {
        assert_eq!(printed.contains(&format!("'{name}'")), is_seen, "{name}: {printed}");
    }
    let written = printed.lines().last().unwrap().strip_suffix(" not there").unwrap();
    let task: Value = serde_json::from_str(written).unwrap();
    assert_eq!(
        (&task["id"], &task["data_source"], &task["settings"], &task["params"], &task["seed"]),
        (&json!("train/3"), &json!("tests"), &json!({"hint": "softly"}), &json!({"style": "brief"}), &json!(0))
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_ending_is_its_own() {
    use FinishReason::{Error, Timeout};
    use RolloutFaultKind::{Failed, OutOfBudget};
    for (script, kind, says, prints) in [
        (
            "echo working; echo 'no luck' >&2; exit 3",
            Failed,
            "the agent failed: the program ended with exit code 3: no luck",
            "working",
        ),
        (
            "kill -SEGV $$",
            Failed,
            "the agent failed: the program was ended by signal 11 (SIGSEGV), and printed nothing",
            "",
        ),
        (
            "cat > /dev/null; echo hello",
            Failed,
            "the agent failed: the program ended without asking the model\nhint: ",
            "hello",
        ),
        ("yes", OutOfBudget, "the agent used up its output: it printed more than 100000 bytes\nhint: ", "y\ny"),
    ] {
        let Played { sample, .. } = run(&["sh", "-c", script]).await;
        let (reason, found, message, printed) = fault(&sample);
        assert_eq!((reason, found), (Error, kind), "{message}");
        assert!(message.starts_with(says) && printed.contains(prints), "{message} {printed}");
        assert!(sample.answer.is_none());
    }
    let Played { sample, .. } = run_with(&["sh", "-c", "sleep 1000"], Duration::from_millis(300), 8).await;
    let (reason, found, message, _) = fault(&sample);
    assert_eq!((reason, found), (Timeout, RolloutFaultKind::Timeout));
    assert_eq!(message, "the agent used up its deadline: the program had not ended after 0.3 s");
    // What it asked for before is kept, and fails with it.
    let Played { sample, .. } = python("sys.exit('out of luck')").await;
    assert_eq!(fault(&sample).2, "the agent failed: the program ended with exit code 1: out of luck");
    assert_eq!(sample.trajectories[0].messages.len(), 3);
    // A policy that has used up its turns is no failure of the program.
    let Played { sample, .. } = run_with(&["python3", "-c", ASKS], Duration::from_secs(300), 1).await;
    assert_eq!((sample.trajectories[0].finish_reason, sample.response().as_str()), (FinishReason::MaxTurns, "abc"));
    assert!(sample.trajectories[0].report.error.is_none());
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_program_leaves_running_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("left");
    // One in its process group, and one in a session of its own.
    let script = format!(
        "sleep 1000 & echo $! > {0}; setsid sh -c 'echo $$ >> {0}; exec sleep 1000' & while [ $(wc -l < {0}) -lt 2 ]; do sleep 0.05; done",
        file.display()
    );
    let left = || std::fs::read_to_string(&file).unwrap_or_default();
    // It ends by itself, or its sample is given up.
    for end in ["exit 0", "sleep 1000"] {
        let program = format!("{script}; {end}");
        let played = tokio::spawn(async move { drop(run(&["sh", "-c", &program]).await) });
        while left().lines().count() < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        if end != "exit 0" {
            played.abort();
        }
        assert_eq!(played.await.is_ok(), end == "exit 0");
        for left in left().lines() {
            let is_running = || {
                let stat = std::fs::read_to_string(format!("/proc/{left}/stat")).unwrap_or_default();
                stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
            };
            // A killed process needs a moment to be gone; one that is not killed would sleep on.
            for _ in 0..6_000 {
                if !is_running() {
                    break;
                }
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
            assert!(!is_running(), "{left} still runs");
        }
        std::fs::remove_file(&file).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_is_posted_each_task() {
    // It asks the model through the session of the task that it was posted.
    async fn attempt(Json(task): Json<Map<String, Value>>) -> (axum::http::StatusCode, Json<Value>) {
        assert!(!Value::Object(task.clone()).to_string().contains(SECRET));
        let prompt = task["prompt"].clone();
        let host = task["base_url"].as_str().unwrap().strip_prefix("http://").unwrap();
        let (host, path) = host.split_once('/').unwrap();
        let body = json!({"messages": prompt}).to_string();
        let request = format!(
            "POST /{path}/chat/completions HTTP/1.1\r\nhost: a\r\nconnection: close\r\nx-api-key: {}\r\ncontent-length: {}\r\n\r\n{body}",
            task["api_key"].as_str().unwrap(),
            body.len()
        );
        let mut stream = tokio::net::TcpStream::connect(host).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::io::AsyncReadExt::read_to_string(&mut stream, &mut answer).await.unwrap();
        let status = if answer.starts_with("HTTP/1.1 200") { 200 } else { 500 };
        let answer = json!({"answer": "served", "extra": {"style": task["params"]["style"]}});
        (axum::http::StatusCode::from_u16(status).unwrap(), Json(answer))
    }
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let broken = || async { (axum::http::StatusCode::INTERNAL_SERVER_ERROR, "broken") };
    let busy = || async { (axum::http::StatusCode::SERVICE_UNAVAILABLE, "busy") };
    let router = Router::new().route("/run", post(attempt)).route("/broken", post(broken)).route("/busy", post(busy));
    let server = tokio::spawn(gavel_http::serve(listener, router));
    let at = |path: &str| play(ProgramSource::Url(format!("http://{address}{path}")), Duration::from_secs(300), 8);
    let Played { sample, .. } = at("/run").await;
    assert_eq!((sample.answer.as_deref(), sample.trajectories.len()), (Some("served"), 1));
    let Played { sample, .. } = at("/broken").await;
    let (_, kind, message, _) = fault(&sample);
    assert!(
        kind == RolloutFaultKind::Failed && message.ends_with("/broken answered 500 Internal Server Error: broken"),
        "{message}"
    );
    let Played { sample, .. } = at("/busy").await;
    let (_, kind, message, _) = fault(&sample);
    assert!(kind == RolloutFaultKind::Unavailable && message.contains("503 Service Unavailable: busy"), "{message}");
    server.abort();
}
