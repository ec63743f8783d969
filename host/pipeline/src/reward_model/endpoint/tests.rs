//! Reward models at servers that answer as they are told.

use super::*;
use gavel_config::RewardModelSource;
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::thread::JoinHandle;

/// Nobody listens there.
const GONE: &str = "http://127.0.0.1:1";

/// A server that gives these answers, one after the other. Returns its address, and a thread with the bodies that
/// it received.
fn serve(answers: Vec<(&'static str, &'static str)>) -> (String, JoinHandle<Vec<Value>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer = move || {
        let answer = |(status, body): (&str, &str)| {
            let (mut stream, _) = listener.accept().unwrap();
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let head: Vec<String> =
                reader.by_ref().lines().map(Result::unwrap).take_while(|line| !line.is_empty()).collect();
            let length = head.iter().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            let mut asked = vec![0; length.parse().unwrap()];
            reader.read_exact(&mut asked).unwrap();
            let length = body.len();
            write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}").unwrap();
            serde_json::from_slice(&asked).unwrap()
        };
        answers.into_iter().map(answer).collect()
    };
    (url, std::thread::spawn(answer))
}

fn endpoint(url: &str, more: &str) -> Arc<RewardEndpoint> {
    endpoints(&[url], more)
}

fn endpoints(urls: &[&str], more: &str) -> Arc<RewardEndpoint> {
    let table: RewardModelTable = toml::from_str(&format!("url = {urls:?}\n{more}")).unwrap();
    let RewardModelSource::Endpoint(config) = table.source() else { panic!("it has a url") };
    Arc::new(RewardEndpoint::new(config, &table, None).unwrap_or_else(|wrong| panic!("{}", wrong.what)))
}

const DAY: &str = "chat_template_kwargs = { day = \"1 May\" }";

fn conversation() -> Vec<Message> {
    vec![Message::new(Role::User, "Hi."), Message::new(Role::Assistant, "Hello!")]
}

#[tokio::test]
async fn a_busy_server_is_asked_again_and_a_refusal_is_not() {
    let scored = r#"{"object": "list", "data": [{"index": 0, "label": "LABEL_0", "probs": [-1.5], "num_classes": 1}]}"#;
    let busy = ("503 Service Unavailable\r\nretry-after: 0.01", "loading");
    let (url, server) = serve(vec![busy, ("429 Too Many Requests", "slow down"), ("200 OK", scored)]);
    let found = endpoint(&url, &format!("model = \"rm\"\n{DAY}")).score(conversation()).await;
    assert_eq!(found, Ok(ConversationScore::whole(-1.5)));
    let asked = server.join().unwrap();
    assert_eq!(asked[0], asked[2]);
    assert_eq!((&asked[0]["model"], &asked[0]["use_activation"]), (&json!("rm"), &json!(false)));
    assert_eq!(asked[0]["chat_template_kwargs"], json!({"day": "1 May"}));
    assert_eq!(asked[0]["messages"][1], json!({"role": "assistant", "content": "Hello!"}));

    let (url, server) = serve(vec![("400 Bad Request", "it is too long")]);
    let refused = endpoint(&url, "").score(conversation()).await.unwrap_err();
    let says = format!("{url}/classify: it answered 400 Bad Request: it is too long");
    assert_eq!((refused, server.join().unwrap().len()), (ChatError::Refused(says), 1));
    let (url, server) = serve(vec![busy, busy]);
    let gone = endpoint(&url, "retries = 1").score(conversation()).await.unwrap_err();
    assert!(
        matches!(&gone, ChatError::Unavailable(what) if what.ends_with("503 Service Unavailable: loading")),
        "{gone}"
    );
    assert_eq!(server.join().unwrap().len(), 2);
}

#[tokio::test]
async fn an_answer_that_is_no_score_is_never_a_zero() {
    for (answer, says) in [
        ("{}", "its answer is not a classification (missing field `data`"),
        (r#"{"data": [{"probs": [0.5, 0.5]}]}"#, "its answer has 2 scores, and a reward model has one label"),
        (r#"{"data": []}"#, "its answer has 0 scores"),
        (r#"{"data": [{"probs": [1e999]}]}"#, "its answer is not a classification (number out of range"),
        ("<html>", "its answer is not a classification (expected value"),
    ] {
        let (url, server) = serve(vec![("200 OK", answer)]);
        let error = endpoint(&url, "").score(conversation()).await.unwrap_err();
        assert!(matches!(&error, ChatError::Unavailable(what) if what.contains(says)), "{answer}: {error}");
        server.join().unwrap();
    }
}

#[tokio::test]
async fn a_server_of_texts_gets_the_rendered_conversation() {
    let folder = tempfile::tempdir().unwrap();
    let template = folder.path().join("chat.jinja");
    std::fs::write(&template, "{{ day }}{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}").unwrap();
    let (url, server) = serve(vec![("200 OK", r#"[{"score": 2.25, "label": "LABEL_0"}]"#)]);
    let endpoint = endpoint(&url, &format!("protocol = \"tei\"\nchat_template = {template:?}\n{DAY}"));
    assert_eq!(endpoint.score(conversation()).await, Ok(ConversationScore::whole(2.25)));
    let asked = json!({"inputs": "1 May[user] Hi.[assistant] Hello!", "raw_scores": true});
    assert_eq!(server.join().unwrap(), [asked]);
}

fn said(text: &str) -> Vec<Message> {
    vec![Message::new(Role::User, "Hi."), Message::new(Role::Assistant, text)]
}

#[tokio::test]
async fn a_vector_of_one_number_is_a_score() {
    let embeddings = "protocol = \"embeddings\"";
    let (url, server) = serve(vec![("200 OK", r#"{"data": [{"index": 0, "embedding": [-1.5]}], "object": "list"}"#)]);
    let found = endpoint(&url, embeddings).score(conversation()).await;
    assert_eq!(found, Ok(ConversationScore::whole(-1.5)));
    let asked = &server.join().unwrap()[0];
    assert_eq!((&asked["encoding_format"], &asked["normalize"]), (&json!("float"), &json!(false)));
    assert_eq!(asked["messages"][1]["content"], json!("Hello!"));
    for (answer, says) in [
        (r#"{"data": [{"embedding": [0.5, 0.5]}]}"#, "its answer has 2 scores, and a reward model has one label"),
        (r#"{"data": [{"embedding": []}]}"#, "its answer has 0 scores"),
        (r#"{"data": [{"embedding": "AADAvw=="}]}"#, "its answer is not a list of vectors (invalid type: string"),
        (r#"{"data": [{"probs": [0.5]}]}"#, "its answer is not a list of vectors (missing field `embedding`"),
    ] {
        let (url, server) = serve(vec![("200 OK", answer)]);
        let error = endpoint(&url, embeddings).score(conversation()).await.unwrap_err();
        assert!(matches!(&error, ChatError::Unavailable(what) if what.contains(says)), "{answer}: {error}");
        server.join().unwrap();
    }
}

#[test]
fn a_vector_that_was_scaled_is_refused_before_the_run() {
    let (url, server) = serve(vec![("200 OK", r#"{"data": [{"embedding": [-1.0]}]}"#)]);
    let wrong = endpoint(&url, "protocol = \"embeddings\"").check().err().unwrap();
    assert!(wrong.what.starts_with("its vector is [-1], as if it were scaled"), "{}", wrong.what);
    server.join().unwrap();
}

#[tokio::test]
async fn responses_to_one_prompt_are_reranked_in_one_request() {
    let ranked = r#"{"results": [{"index": 1, "relevance_score": 2.0}, {"index": 0, "relevance_score": -1.0}]}"#;
    let (url, server) = serve(vec![("200 OK", ranked)]);
    let endpoint = endpoint(&url, "protocol = \"rerank\"\nmodel = \"rm\"");
    let found = futures::future::join(endpoint.clone().score(said("a")), endpoint.clone().score(said("b"))).await;
    assert_eq!(found, (Ok(ConversationScore::whole(-1.0)), Ok(ConversationScore::whole(2.0))));
    let asked =
        json!({"query": "Hi.", "documents": ["a", "b"], "model": "rm", "use_activation": false, "activation": false});
    assert_eq!(server.join().unwrap(), [asked]);
}

#[tokio::test]
async fn a_document_that_is_refused_has_no_part_in_the_others() {
    let alone = r#"{"results": [{"index": 0, "relevance_score": 2.0}]}"#;
    let long = ("400 Bad Request", "it is too long");
    let (url, server) = serve(vec![long, long, ("200 OK", alone)]);
    let endpoint = endpoint(&url, "protocol = \"rerank\"");
    let (first, second) =
        futures::future::join(endpoint.clone().score(said("a")), endpoint.clone().score(said("b"))).await;
    assert!(matches!(&first, Err(ChatError::Refused(what)) if what.ends_with("it is too long")), "{first:?}");
    assert_eq!(second, Ok(ConversationScore::whole(2.0)));
    assert_eq!(server.join().unwrap()[2]["documents"], json!(["b"]));
}

#[tokio::test]
async fn a_ranking_that_is_not_one_score_a_document_is_never_a_score() {
    let result = |index: usize, score: &str| format!("{{\"index\": {index}, \"relevance_score\": {score}}}");
    for (results, says) in [
        (vec![result(0, "1.0")], "its answer has 1 results, and 2 documents were sent"),
        (vec![result(0, "1.0"), result(0, "1.0")], "its answer has two results of the document 0"),
        (vec![result(0, "1.0"), result(2, "1.0")], "its answer has a result of the document 2"),
        (vec![result(0, "1.0"), result(1, "null")], "its answer is not a ranking (invalid type: null"),
    ] {
        let answer = format!("{{\"results\": [{}]}}", results.join(","));
        let error = rerank::read(answer.as_bytes(), 2).unwrap_err();
        assert!(error.starts_with(says), "{answer}: {error}");
    }
    let error = rerank::read(b"[{\"index\": 0, \"score\": 1.0}]", 1).unwrap_err();
    assert!(error.starts_with("its answer is not a ranking ("), "{error}");
}

#[tokio::test]
async fn a_conversation_of_several_turns_is_not_reranked() {
    let endpoint = endpoint(GONE, "protocol = \"rerank\"");
    let mut turns = conversation();
    turns.insert(0, Message::new(Role::System, "Be brief."));
    let reversed = conversation().into_iter().rev().collect();
    for (conversation, says) in
        [(turns, "and the conversation has 3 messages"), (reversed, "and the messages are those of assistant and user")]
    {
        let error = endpoint.clone().score(conversation).await.unwrap_err();
        assert!(matches!(&error, ChatError::Refused(what) if what.ends_with(says)), "{error}");
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_left_out() {
    let scored = ("200 OK", r#"{"data": [{"probs": [0.25]}]}"#);
    let (url, server) = serve(vec![scored; 3]);
    let endpoint = endpoints(&[GONE, &url], "");
    // The first request finds the server that is gone, and is sent to the other.
    for _ in 0..3 {
        assert_eq!(endpoint.clone().score(conversation()).await, Ok(ConversationScore::whole(0.25)));
    }
    assert_eq!(server.join().unwrap().len(), 3);
}

#[test]
fn a_server_that_is_gone_before_the_run_is_a_mistake_only_if_it_is_alone() {
    let (url, server) = serve(vec![("200 OK", r#"{"data": [{"probs": [0.25]}]}"#)]);
    assert!(endpoints(&[GONE, &url], "").check().is_ok());
    server.join().unwrap();
    let wrong = endpoints(&[GONE, GONE], "").check().err().unwrap();
    assert!(wrong.what.starts_with(&format!("{GONE}/classify: ")), "{}", wrong.what);
    // One that answers otherwise than it must is not left out.
    let ((url, server), (other, refusing)) =
        (serve(vec![("200 OK", r#"{"data": [{"probs": [0.25]}]}"#)]), serve(vec![("404 Not Found", "no")]));
    let wrong = endpoints(&[&url, &other], "").check().err().unwrap();
    assert!(wrong.what.starts_with(&format!("{other}/classify: it answered 404")), "{}", wrong.what);
    server.join().unwrap();
    refusing.join().unwrap();
}
