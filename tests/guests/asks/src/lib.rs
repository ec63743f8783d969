//! Asks the endpoint `judge` the number of questions in its parameters at once,
//! and scores with the sum of the answers. Errors are in the note.

use gavel_sdk::chat::{self, Request};
use gavel_sdk::{ContentPart, Failure, Info, Reference, Reward, Sample, Score, Verdict};

struct Asks {
    params: Params,
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Params {
    #[serde(default = "one")]
    questions: usize,
    #[serde(default = "judge")]
    endpoint: String,
    /// Whether `init` asks too, which is not allowed.
    #[serde(default)]
    in_init: bool,
    /// Whether errors are in a score's note.
    #[serde(default)]
    forgive: bool,
}

fn one() -> usize {
    1
}

fn judge() -> String {
    "judge".into()
}

impl Reward for Asks {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        if params.in_init {
            Request::new(&params.endpoint).user("?").send().map_err(|error| error.to_string())?;
        }
        Ok(Self { params })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"))
    }

    fn score(&self, sample: &Sample, _: &Reference) -> Result<Verdict, Failure> {
        let request = |number: usize| {
            let request = Request::new(&self.params.endpoint).system("Answer with a number.");
            let request = request.user(format!("{number}: {}", sample.response())).option("temperature", 0);
            // The judge may get the attachments of a prompt.
            let media = sample.prompt().into_iter().flat_map(|message| {
                let shown = message.content.iter().any(|part| matches!(part, ContentPart::Media(_)));
                shown.then_some(message)
            });
            media.fold(request, Request::message)
        };
        let mut sum = 0.0;
        let mut trouble = Vec::new();
        for reply in chat::complete((0..self.params.questions).map(request).collect()) {
            match reply {
                Ok(reply) => {
                    let text = reply.text();
                    sum += text.trim().parse::<f64>().map_err(|_| {
                        Failure::internal(format!("{text:?} is not a number ({:?})", reply.finish_reason()))
                    })?;
                }
                Err(error) if self.params.forgive => trouble.push(error.to_string()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Score::new(sum).note(trouble.join("; ")).into())
    }
}

gavel_sdk::export_reward!(Asks);
