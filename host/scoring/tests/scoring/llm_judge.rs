//! The plugin `llm-judge`, against a real HTTP server that speaks the
//! chat-completions protocol.

use crate::common::{asking, endpoint, run, sample, serve};
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use gavel_data::{CausedBy, Evaluation, Outcome};
use gavel_scoring::PendingGroup;
use serde_json::{Value, json};
use std::sync::{Arc, Mutex};
use tokio::runtime::Runtime;

/// A model: from the messages to its answer, or `None` if it is down.
type Model = fn(&[Value]) -> Option<String>;

#[derive(Clone)]
struct Server {
    model: Model,
    /// Whether it takes a JSON schema; if not, it refuses the request.
    takes_schema: bool,
    asked: Arc<Mutex<Vec<Value>>>,
}

async fn answer(State(server): State<Server>, body: String) -> Response {
    let body: Value = serde_json::from_str(&body).unwrap();
    let said = (server.model)(body["messages"].as_array().unwrap());
    let is_refused = !server.takes_schema && body.get("response_format").is_some();
    server.asked.lock().unwrap().push(body);
    if is_refused {
        return (StatusCode::BAD_REQUEST, r#"{"error": {"message": "no response_format here"}}"#).into_response();
    }
    match said {
        Some(text) => {
            json!({"choices": [{"message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})
                .to_string()
                .into_response()
        }
        None => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// The evaluations of a judge with these parameters on the responses of a group,
/// and the requests to the model.
fn judge(params: Value, responses: &[&str], model: Model) -> (Vec<Evaluation>, Vec<Value>) {
    let (mut found, asked) = judge_groups(params, &[responses], model, true);
    (found.remove(0), asked)
}

/// The same for one group after another.
fn judge_groups(
    params: Value,
    groups: &[&[&str]],
    model: Model,
    takes_schema: bool,
) -> (Vec<Vec<Evaluation>>, Vec<Value>) {
    let runtime = Runtime::new().unwrap();
    let server = Server { model, takes_schema, asked: Arc::default() };
    let address = serve(&runtime, post(answer).with_state(server.clone()));
    let plugin = asking("judge", "plugins/llm-judge.wasm", params);
    let scorer = run(vec![plugin], endpoint(address, json!({"retries": 0}))).unwrap();
    let columns = json!({"prompt": "Greet me.", "ground_truth": "Good morning."});
    let of_group = |responses: &&[&str]| {
        let group = PendingGroup::new(responses.len());
        let start = |(index, response): (u32, &&str)| scorer.start(&group, sample(columns.clone(), index, response), 1);
        let pending: Vec<_> = (0..).zip(*responses).map(start).collect();
        pending.into_iter().map(|each| scorer.wait(each).plugins.remove("judge").unwrap()).collect()
    };
    let found = groups.iter().map(of_group).collect();
    let asked = server.asked.lock().unwrap().clone();
    (found, asked)
}

/// The scores, or the kinds of outcomes where there are none.
fn scores(found: &[Evaluation]) -> Vec<Result<f64, &'static str>> {
    let score = |each: &Evaluation| match &each.outcome {
        Outcome::Scored(score) => Ok(score.value),
        outcome => Err(outcome.kind().as_str()),
    };
    found.iter().map(score).collect()
}

/// The text in a prompt between `<name>` and `</name>`.
fn part<'a>(messages: &'a [Value], name: &str) -> &'a str {
    let prompt = messages[0]["content"].as_str().unwrap();
    let (_, rest) = prompt.split_once(&format!("<{name}>\n")).unwrap();
    rest.split_once(&format!("\n</{name}>")).unwrap().0
}

#[test]
fn each_response_is_rated_by_itself_and_an_unclear_reply_is_asked_again() {
    let (found, asked) =
        judge(json!({"mode": "single", "options": {"temperature": 0}}), &["Hello!", "Hm."], |messages| {
            let polite = part(messages, "response") == "Hello!";
            Some(match (polite, messages.len()) {
                (true, _) => "It greets.\nScore: 9".into(),
                (false, 1) => "I would rather not say.".into(),
                (false, _) => "Score: 1".into(),
            })
        });
    assert_eq!(scores(&found), [Ok(0.9), Ok(0.1)]);
    assert_eq!(asked.len(), 3);
    assert_eq!((&asked[0]["model"], &asked[0]["temperature"]), (&json!("judge-7b"), &json!(0)));
    let again = asked.iter().find(|body| body["messages"].as_array().unwrap().len() == 3).unwrap();
    assert_eq!(again["messages"][1], json!({"role": "assistant", "content": "I would rather not say."}));
    assert_eq!(part(again["messages"].as_array().unwrap(), "task"), "Greet me.");
}

#[test]
fn a_model_that_prefers_what_stands_first_decides_nothing() {
    let params = json!({"mode": "pairwise"});
    let (found, asked) = judge(params.clone(), &["a", "bb", "ccc"], |_| Some("Better: A".into()));
    assert_eq!(scores(&found), [Ok(0.5), Ok(0.5), Ok(0.5)]);
    assert_eq!(asked.len(), 6);
    let (found, _) = judge(params, &["a", "bb", "ccc"], |messages| {
        let longer = part(messages, "response_a").len() > part(messages, "response_b").len();
        Some(format!("Better: {}", if longer { "A" } else { "B" }))
    });
    assert_eq!(scores(&found), [Ok(0.0), Ok(0.5), Ok(1.0)]);
}

#[test]
fn a_pair_may_be_a_response_and_the_reference() {
    let params = json!({"mode": "pairwise", "against": "reference"});
    let (found, asked) = judge(params, &["Good morning.", "Go away."], |messages| {
        let good = |name| part(messages, name) == "Good morning.";
        Some(format!("Better: {}", if good("response_a") { "A" } else { "B" }))
    });
    assert_eq!(scores(&found), [Ok(0.5), Ok(0.0)]);
    assert_eq!(asked.len(), 2, "equal texts are not asked about");
}

#[test]
fn criteria_are_asked_at_once_and_weighed() {
    let criteria = json!([{"text": "It greets.", "weight": 3}, {"text": "It has one word."}]);
    let (found, asked) =
        judge(json!({"mode": "rubric", "criteria": criteria}), &["Hello, you!", "Hello!"], |messages| {
            let one = !part(messages, "response").contains(' ');
            Some(format!("1: yes\n2: {}", if one { "yes" } else { "no, two" }))
        });
    assert_eq!(scores(&found), [Ok(0.75), Ok(1.0)]);
    assert_eq!(asked.len(), 2);
}

#[test]
fn what_is_not_judged_has_no_score() {
    let model: Model = |messages| (part(messages, "response") == "a").then(|| "Score: 5".into());
    let (found, _) = judge(json!({"mode": "single"}), &["a", "b"], model);
    assert_eq!(scores(&found), [Ok(0.5), Err("abstained")]);
    assert!(found[1].outcome.reason().unwrap().contains("unavailable"));
    assert_eq!(found[1].caused_by, Some(CausedBy::Unknown), "the server may have failed by chance");
    let (found, _) = judge(json!({"mode": "single"}), &["b", "b"], model);
    assert_eq!(scores(&found), [Err("unavailable"), Err("unavailable")]);
    let (found, asked) = judge(json!({"mode": "single", "retries": 1}), &["b"], |_| Some("Hm.".into()));
    assert_eq!(scores(&found), [Err("abstained")]);
    assert!(found[0].outcome.reason().unwrap().contains("Hm."));
    assert_eq!(found[0].caused_by, Some(CausedBy::Unknown), "the judge may give no verdict on any response");
    assert_eq!(asked.len(), 2);
    let confused: Model = |messages| Some(if part(messages, "response") == "a" { "Score: 5" } else { "Hm." }.into());
    let (found, _) = judge(json!({"mode": "single", "retries": 0}), &["a", "b"], confused);
    assert_eq!(scores(&found), [Ok(0.5), Err("abstained")]);
    assert_eq!(found[1].caused_by, Some(CausedBy::Response));
}

#[test]
fn a_verdict_is_asked_for_as_json_where_the_server_takes_a_schema() {
    let model: Model = |_| Some(r#"{"reason": "It claims\nScore: 10", "score": 2}"#.into());
    let (found, asked) = judge(json!({"mode": "single"}), &["Hello!"], model);
    assert_eq!(scores(&found), [Ok(0.2)]);
    let format = &asked[0]["response_format"];
    assert_eq!((&format["type"], asked.len()), (&json!("json_schema"), 1));
    assert_eq!(format["json_schema"]["schema"]["required"], json!(["reason", "score"]));
    for (params, format) in [
        (json!({"mode": "single", "structured": false}), Value::Null),
        (json!({"mode": "single", "prompt": "Rate {response} from 0 to 5."}), Value::Null),
        (json!({"mode": "single", "options": {"response_format": {"type": "text"}}}), json!({"type": "text"})),
        (json!({"mode": "single", "options": {"guided_regex": "Score: [0-9]"}}), Value::Null),
    ] {
        let (_, asked) = judge(params, &["Hello!"], model);
        assert_eq!(asked[0]["response_format"], format);
    }
}

#[test]
fn a_server_that_refuses_a_schema_is_asked_without_and_costs_no_score() {
    let model: Model = |_| Some("It greets.\nScore: 7".into());
    let (found, asked) = judge_groups(json!({"mode": "single"}), &[&["a"], &["b", "c"]], model, false);
    assert_eq!([scores(&found[0]), scores(&found[1])], [vec![Ok(0.7)], vec![Ok(0.7); 2]]);
    let have_schema: Vec<bool> = asked.iter().map(|body| body.get("response_format").is_some()).collect();
    assert_eq!(have_schema, [true, false, false, false], "it is asked with a schema once");
}
