//! Whatever a program does, each recorded row has the tokens that were templated and drawn, and its mask marks those that
//! were drawn.

use crate::call::{Call, Retry};
use crate::limits::SessionLimits;
use crate::scripted::Scripted;
use crate::session::{ChatSession, Session};
use axum::body::to_bytes;
use futures::future::join_all;
use gavel_agent::{EpisodeProgress, History, Policy};
use gavel_data::{Message, Task, Trajectory};
use gavel_http::Size;
use gavel_text::RenderOptions;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

/// What a program does next with one of its conversations.
#[derive(Debug, Clone)]
enum Step {
    /// Says something, and reads the reply.
    Say(usize, u8),
    /// Says several things at once, each as the next message.
    Fork(usize, u8),
    /// Changes or drops an earlier message, and says something.
    Edit(usize, usize, Option<u8>, u8),
    /// Asks again what it asked, as a client's library does.
    Retry(usize, u8, bool),
    /// Asks for several choices, and continues with one.
    Choices(usize, u8),
    /// Offers tools from here on, or none.
    Tools(usize, bool),
}

fn step() -> impl Strategy<Value = Step> {
    let which = 0..4usize;
    prop_oneof![
        4 => (which.clone(), 0..3u8).prop_map(|(which, said)| Step::Say(which, said)),
        2 => (which.clone(), 0..3u8).prop_map(|(which, said)| Step::Fork(which, said)),
        2 => (which.clone(), 0..6usize, proptest::option::of(0..3u8), 0..3u8)
            .prop_map(|(which, at, other, said)| Step::Edit(which, at, other, said)),
        2 => (which.clone(), 0..3u8, any::<bool>()).prop_map(|(which, said, key)| Step::Retry(which, said, key)),
        1 => (which.clone(), 0..3u8).prop_map(|(which, said)| Step::Choices(which, said)),
        1 => (which, any::<bool>()).prop_map(|(which, tools)| Step::Tools(which, tools)),
    ]
}

/// A conversation as the program has it.
#[derive(Clone)]
struct Client {
    messages: Vec<Value>,
    has_tools: bool,
}

impl Client {
    fn body(&self, said: u8, n: usize) -> Value {
        let mut messages = self.messages.clone();
        messages.push(json!({"role": "user", "content": format!("u{said}")}));
        let mut body = json!({"model": "any", "messages": messages, "n": n});
        if self.has_tools {
            body["tools"] = json!([{"type": "function", "function": {"name": "f", "parameters": {}}}]);
        }
        body
    }

    /// Continues with a reply, which it writes in its own way.
    fn read(&mut self, body: &Value, reply: &Value, way: u8) {
        self.messages = body["messages"].as_array().unwrap().clone();
        let text = &reply["content"];
        self.messages.push(match way % 3 {
            0 => reply.clone(),
            1 => json!({"role": "assistant", "content": [{"type": "text", "text": text}], "refusal": null}),
            _ => json!({"role": "assistant", "content": text, "tool_calls": null, "name": null, "audio": null}),
        });
    }
}

async fn ask(session: &Arc<Session<Scripted>>, body: &Value, retry: Retry) -> Value {
    let call = Call { body: body.clone(), size: Size::of(body.to_string().len()), retry };
    let response = session.clone().chat(call).await;
    let status = response.status();
    let bytes = to_bytes(response.into_body(), usize::MAX).await.unwrap();
    let answer: Value = serde_json::from_slice(&bytes).unwrap();
    assert!(status.is_success(), "{answer}");
    answer
}

async fn play(session: &Arc<Session<Scripted>>, steps: &[Step], prompt: &Value) {
    let first = Client { messages: vec![prompt.clone()], has_tools: false };
    let mut clients = vec![first; 4];
    let none = Retry::default();
    for (number, step) in steps.iter().enumerate() {
        let way = number as u8;
        match step {
            Step::Say(which, said) => {
                let body = clients[*which].body(*said, 1);
                let answer = ask(session, &body, none.clone()).await;
                clients[*which].read(&body, &answer["choices"][0]["message"], way);
            }
            Step::Fork(which, said) => {
                // Two of them say the same.
                let bodies: Vec<Value> = [0, 1, 0].map(|more| clients[*which].body(said + more, 1)).into();
                let answers = join_all(bodies.iter().map(|body| ask(session, body, none.clone()))).await;
                for (at, (body, answer)) in bodies.iter().zip(&answers).enumerate() {
                    let mut client = clients[*which].clone();
                    client.read(body, &answer["choices"][0]["message"], way + at as u8);
                    if at > 0 {
                        clients[(*which + at) % 4] = client;
                    }
                }
            }
            Step::Edit(which, at, other, said) => {
                let client = &mut clients[*which];
                let at = at % client.messages.len();
                match other {
                    Some(other) => client.messages[at]["content"] = format!("edited{other}").into(),
                    None if at > 0 => drop(client.messages.remove(at)),
                    None => {}
                }
                let body = client.body(*said, 1);
                let answer = ask(session, &body, none.clone()).await;
                client.read(&body, &answer["choices"][0]["message"], way);
            }
            Step::Retry(which, said, has_key) => {
                let body = clients[*which].body(*said, 1);
                let key = has_key.then(|| format!("key{number}"));
                let [first, second, third] = [0, 1, 2].map(|count| Retry { idempotency_key: key.clone(), count });
                // While the first is drawn, and afterwards.
                let (one, other) = tokio::join!(ask(session, &body, first), ask(session, &body, second));
                let last = ask(session, &body, third).await;
                assert_eq!(one, other);
                assert_eq!(one, last);
                clients[*which].read(&body, &one["choices"][0]["message"], way);
            }
            Step::Choices(which, said) => {
                let body = clients[*which].body(*said, 3);
                let answer = ask(session, &body, none.clone()).await;
                let choices = answer["choices"].as_array().unwrap();
                assert_eq!(choices.len(), 3);
                clients[*which].read(&body, &choices[usize::from(way) % 3]["message"], way);
            }
            Step::Tools(which, has_tools) => clients[*which].has_tools = *has_tools,
        }
    }
}

/// Checks a row, and gives how many turns the policy wrote in it.
fn check(policy: &Scripted, task: &Task, row: &Trajectory, unrecorded: &mut Vec<crate::scripted::Written>) {
    let tokens = row.tokens().unwrap();
    let opening = row.opening.as_ref().map_or(&task.prompt, |opening| &opening.messages);
    let mut drawn = vec![false; tokens.response.len()];
    let mut at = 0;
    assert!(!row.trace.turns.is_empty());
    for turn in &row.trace.turns {
        let start = at + tokens.loss_mask[at..].iter().position(|is_drawn| *is_drawn).unwrap();
        let end = start + turn.tokens as usize;
        // What came before is what the template makes of the messages, as the policy wrote them.
        let before: Vec<Message> = opening.iter().chain(&row.messages[..turn.message as usize]).cloned().collect();
        let options = RenderOptions::prompt(&row.trace.tools);
        let prompt = [&tokens.prompt[..], &tokens.response[..start]].concat();
        assert_eq!(prompt, policy.text().prompt_ids_with(&before, &options).unwrap());
        // What was drawn there is what the policy wrote.
        let written = unrecorded.iter().position(|written| {
            (&written.prompt, &written.ids[..], &written.logprobs[..])
                == (&prompt, &tokens.response[start..end], &tokens.logprobs[start..end])
        });
        unrecorded.remove(written.expect("it was drawn, and is in no other row"));
        drawn[start..end].fill(true);
        at = end;
    }
    assert_eq!(tokens.loss_mask, drawn);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn rows_have_what_was_templated_and_what_was_drawn(
        steps in proptest::collection::vec(step(), 1..14),
        seed in any::<u64>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            // Few replies, so that some are equal.
            let policy = Arc::new(Scripted::new(|seed| format!("r{}", seed % 4)));
            let prompt = json!({"role": "user", "content": "task"});
            let row = json!({"prompt": [prompt]}).to_string();
            let task = Arc::new(Task::from_row(serde_json::from_str(&row).unwrap(), 0, "train").unwrap());
            let limits = SessionLimits {
                max_prompt_tokens: 10_000,
                max_tokens: 10_000,
                max_turns: 1_000,
                history: History::Exact,
                grace: Duration::from_secs(600),
            };
            let progress = EpisodeProgress::default();
            let session = Session::new(task.clone(), seed, limits, policy.clone(), progress).unwrap();
            play(&session, &steps, &prompt).await;
            let ended = session.end();
            let mut unrecorded = policy.written();
            for row in &ended.trajectories {
                check(&policy, &task, row, &mut unrecorded);
            }
            assert!(unrecorded.is_empty(), "{} turns are in no row", unrecorded.len());
        });
    }
}
