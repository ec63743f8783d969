//! Runs the program `child` once for each word of the response, all at once.
//! The note has the ending of each. The score is the number of jobs.

use gavel_sdk::exec::{self, Ending, Job};
use gavel_sdk::{Failure, Info, Reference, Reward, Sample, Score, Verdict};
use serde_json::json;

struct Runs {
    params: Params,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    cpu_ms: Option<u32>,
    memory: Option<u64>,
    #[serde(default)]
    pure: bool,
    #[serde(default = "child")]
    program: String,
}

fn child() -> String {
    "child".into()
}

impl Reward for Runs {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        let info = Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        if self.params.pure { info.pure() } else { info }
    }

    fn score(&self, sample: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        let response = sample.response();
        let job = |word: &str| {
            let job = Job::new(&self.params.program).args([word]).stdin(format!("input of {word}"));
            let job = match self.params.cpu_ms {
                Some(cpu_ms) => job.cpu_ms(cpu_ms),
                None => job,
            };
            match self.params.memory {
                Some(memory) => job.memory(memory),
                None => job,
            }
        };
        let mut told = Vec::new();
        for output in exec::run(response.split_whitespace().map(job).collect()) {
            let output = output?;
            let ending = match output.ending {
                Ending::Exited(status) => format!("exited {status}"),
                Ending::OutOfBudget(budget) => format!("out of {budget}"),
                Ending::Trapped(_) => "trapped".to_owned(),
            };
            let text = String::from_utf8_lossy(&output.stdout).chars().take(200).collect::<String>();
            // Times differ in every run.
            let cpu_us = (!self.params.pure).then_some(output.cpu_us);
            told.push(json!([ending, text, output.stdout.len(), !output.stderr.is_empty(), cpu_us]));
        }
        Ok(Score::new(told.len() as f64).note(json!(told).to_string()).into())
    }
}

gavel_sdk::export_reward!(Runs);
