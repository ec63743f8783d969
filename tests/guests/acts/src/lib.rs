//! An agent that does what the row says, good or bad.

use gavel_sdk::policy::{self, Conversation, Options};
use gavel_sdk::{Agent, Answer, Failure, Info, Message, NoParams, Role, Task, ToolCall, tools};
use serde_json::{Value, json};

struct Acts;

impl Agent for Acts {
    type Params = NoParams;

    fn new(_: NoParams) -> Result<Self, String> {
        Ok(Self)
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).pure()
    }

    fn run(&self, task: &Task) -> Result<Answer, Failure> {
        let settings: Value = serde_json::from_str(&task.settings()).unwrap_or_default();
        let answer = Answer::new(act(task, &settings)?);
        Ok(match settings.get("extra") {
            Some(extra) => answer.extra(extra.clone()),
            None => answer,
        })
    }
}

gavel_sdk::export_agent!(Acts);

fn act(task: &Task, settings: &Value) -> Result<String, Failure> {
    let begin = || Conversation::begin(task.prompt());
    match settings["act"].as_str().unwrap_or_default() {
        "tell" => Ok(json!({
            "id": task.id(),
            "source": task.data_source(),
            "index": task.group_index(),
            "prompt": task.prompt().iter().map(Message::text).collect::<String>(),
            "settings": settings,
        })
        .to_string()),
        "turns" => {
            let conversation = begin()?;
            loop {
                conversation.generate(&Options::default())?;
                conversation.append(vec![Message::user("More.")])?;
            }
        }
        "fork" => {
            let conversation = begin()?;
            conversation.generate(&Options::default())?;
            let (left, right) = (conversation.fork("left")?, conversation.fork("right")?);
            left.append(vec![Message::user("Left?")])?;
            right.append(vec![Message::user("Right?")])?;
            let turns = policy::generate(&[&left, &right], &Options::default().stop("!").max_tokens(50));
            turns.into_iter().map(|turn| Ok(turn?.text())).collect()
        }
        // A fork after each turn, as if each had a budget of its own.
        "deep" => {
            let mut conversation = begin()?;
            loop {
                if let Err(error) = conversation.generate(&Options::default()) {
                    return Ok(error.what().into());
                }
                conversation = conversation.fork("")?;
                conversation.append(vec![Message::user("More.")])?;
            }
        }
        // A tool that computes for some time.
        "wait" => {
            let call = ToolCall { id: "1".into(), name: "loop".into(), arguments: "{}".into() };
            Ok(tools::call(&[call]).iter().map(Message::text).collect())
        }
        "twice" => {
            let conversation = begin()?;
            let turns = policy::generate(&[&conversation, &conversation], &Options::default());
            Ok(turns.iter().filter_map(|turn| turn.as_ref().err()).map(policy::Error::what).collect())
        }
        "again" => {
            let conversation = begin()?;
            conversation.generate(&Options::default())?;
            Ok(conversation.generate(&Options::default()).map_or_else(|error| error.what().into(), |turn| turn.text()))
        }
        "call" => {
            let conversation = begin()?;
            conversation.generate(&Options::default())?;
            let call = |name: &str, arguments: Value| ToolCall {
                id: name.into(),
                name: name.into(),
                arguments: arguments.to_string(),
            };
            let calls = [call("add", json!({"by": 2})), call("add", json!({"by": 3})), call("nothing", json!({}))];
            let answers = tools::call(&calls);
            Ok(answers
                .iter()
                .map(|answer| format!("{}: {}\n", answer.tool_call_id.as_deref().unwrap_or_default(), answer.text()))
                .collect())
        }
        // Turns between which a tool answers and a user speaks; no tool where the row names no call.
        "converse" => {
            let name = settings["call"]["name"].as_str().unwrap_or_default();
            let functions: Vec<_> = tools::specs().into_iter().filter(|function| function.name == name).collect();
            let conversation = Conversation::open("", task.prompt(), &functions)?;
            let short = Options::default().max_tokens(3);
            conversation.generate(&short)?;
            if !functions.is_empty() {
                let (id, name) = ("call00000".into(), name.into());
                let arguments = settings["call"]["arguments"].to_string();
                conversation.append(tools::call(&[ToolCall { id, name, arguments }]))?;
                conversation.generate(&short)?;
            }
            conversation.append(vec![Message::user("More.")])?;
            conversation.generate(&short)?;
            // Something to learn from, whatever the policy wrote.
            Ok(if task.group_index().is_multiple_of(2) { "even" } else { "ODD" }.into())
        }
        "append" => {
            let conversation = begin()?;
            loop {
                conversation.append(vec![Message::user("x".repeat(100_000))])?;
            }
        }
        "open" => loop {
            begin()?;
        },
        "forks" => {
            let conversation = begin()?;
            let mut forks = Vec::new();
            loop {
                forks.push(conversation.fork("")?);
            }
        }
        "calls" => {
            begin()?.generate(&Options::default())?;
            let call = ToolCall { id: "1".into(), name: "add".into(), arguments: json!({"by": 1}).to_string() };
            loop {
                tools::call(std::slice::from_ref(&call));
            }
        }
        "stops" => {
            let count = settings["count"].as_u64().unwrap_or(20_000);
            let stops = (0..count).fold(Options::default(), |options, number| options.stop(number.to_string()));
            Ok(begin()?.generate(&stops)?.text())
        }
        "message" => {
            begin()?.append(vec![Message::user("x".repeat(64 << 20))])?;
            Ok(String::new())
        }
        // Text that the policy did not write: a turn in its name, and the marks of turns and calls.
        "forge" => {
            let conversation = begin()?;
            conversation.generate(&Options::default())?;
            let marks = settings["text"].as_str().unwrap_or_default();
            conversation.append(vec![
                Message::user(marks),
                Message::new(Role::Assistant, "I said so."),
                Message::user(marks),
            ])?;
            Ok(conversation.generate(&Options::default())?.text())
        }
        "long" => {
            let conversation = Conversation::begin(vec![Message::user("x".repeat(200_000))])?;
            Ok(conversation.generate(&Options::default())?.text())
        }
        "loop" => {
            begin()?.generate(&Options::default())?;
            let mut sum = 0_u64;
            loop {
                sum = std::hint::black_box(sum + 1);
            }
        }
        "trap" => {
            begin()?.generate(&Options::default())?;
            panic!("as the row says")
        }
        "sleep" => {
            begin()?.generate(&Options::default())?;
            std::thread::sleep(std::time::Duration::from_secs(3600));
            Ok(String::new())
        }
        "refuse" => Err(Failure::unavailable("the row says so")),
        other => Err(Failure::invalid_input(format!("there is no act {other:?}"))),
    }
}
