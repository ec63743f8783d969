//! Judges whether documents support a response: it searches a granted folder, then asks a granted language model.

mod params;

use document_passages::{Index, Passage, read, split, write};
use gavel_sdk::{Failure, Info, Judger, Reference, Sample, Score, Verdict};
use model_judging::{Model, Task, Template, ask, conversation, cut, score, score_format, score_reminder, verdicts};
use params::Params;
use std::path::Path;

/// Longer queries find nothing better and take longer.
const QUERY_WORDS: usize = 256;

/// A judge with its documents.
pub struct RetrievalJudge {
    model: Model,
    prompt: Template,
    reminder: &'static str,
    rubric: String,
    top_k: usize,
    passages_chars: usize,
    passages: Vec<Passage>,
    index: Index,
}

impl Judger for RetrievalJudge {
    type Params = Params;

    fn new(params: Params) -> Result<Self, String> {
        let prompt = params.check()?;
        let reminder = score_reminder(params.prompt.is_some() && !params.is_structured());
        let format = params.is_structured().then(score_format);
        let Params { endpoint, folder, passage_chars, passages_chars, top_k, system, rubric, retries, options, .. } =
            params;
        let passages = split(read(Path::new(&folder))?, passage_chars);
        let index = Index::new(&passages);
        let model = Model { endpoint, system, retries, options, format };
        Ok(Self { model, prompt, reminder, rubric, top_k, passages_chars, passages, index })
    }

    fn info(&self) -> Info {
        Info::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")).score_range(0.0, 1.0)
    }

    fn judge(&self, samples: &[Sample], reference: &Reference) -> Result<Vec<Verdict>, Failure> {
        let Some(first) = samples.first() else { return Ok(Vec::new()) };
        let reference = reference.ground_truth();
        if reference.is_none() && self.prompt.has("reference") {
            return Err(Failure::invalid_input(
                "the row has no ground truth, which this judge needs: leave {reference} out of `prompt`",
            ));
        }
        let task = Task { prompt: conversation(&first.prompt()), reference, rubric: self.rubric.clone() };
        let asked: Vec<(usize, String)> =
            samples.iter().map(|sample| self.question(&task, &sample.response())).collect();
        let (counts, prompts): (Vec<usize>, Vec<String>) = asked.into_iter().unzip();
        let given = ask(&self.model, &prompts, self.reminder, score).into_iter().zip(counts);
        let judged = given.map(|(given, passages)| {
            let given = given?;
            Ok(Score::new(given.verdict).note(cut(&given.reply)).metric("passages", passages as f64))
        });
        verdicts(judged.collect())
    }
}

gavel_sdk::export_judger!(RetrievalJudge);

impl RetrievalJudge {
    /// The number of passages that fit a response, and the prompt that contains them.
    fn question(&self, task: &Task, response: &str) -> (usize, String) {
        let query: Vec<&str> = response.split_whitespace().chain(task.prompt.split_whitespace()).collect();
        let query = query[..query.len().min(QUERY_WORDS)].join(" ");
        let found = self.index.find(&query, self.top_k).unwrap_or_default();
        let passages = write(found.iter().map(|place| &self.passages[*place]), self.passages_chars);
        (found.len(), self.prompt.fill(task, &[("response", response), ("passages", &passages)]))
    }
}
