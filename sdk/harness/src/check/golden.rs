//! A response that the plugin accepts.

use super::answer::{answer, wrong};
use super::trial::Trial;
use gavel_data::Evaluation;

/// A text that no plugin should accept as an answer.
pub(super) const NONSENSE: &str = "I do not know.";

/// Forms in which answers are written; `@` stands for the answer.
const FORMS: [(&str, &str); 7] = [
    ("\\boxed{}", "The answer is $\\boxed{@}$."),
    ("####", "#### @"),
    ("Answer:", "Answer: @"),
    ("<answer>", "<answer>@</answer>"),
    ("<think><answer>", "<think>Let me see.</think>\n<answer>@</answer>"),
    ("```json", "```json\n@\n```"),
    ("plain", "@"),
];

/// A response that scores higher than nonsense.
pub(super) struct Golden {
    pub(super) response: String,
    /// Its origin.
    pub(super) form: &'static str,
    pub(super) said: Evaluation,
    /// The right answer in short, if the row has one.
    pub(super) right: Option<String>,
    /// A wrong answer.
    pub(super) wrong: Option<String>,
}

/// The best of the row's own response and of its ground truth in the usual
/// forms. `None` if none of them scores higher than nonsense.
pub(super) fn find_golden(trial: &Trial<'_>) -> Option<Golden> {
    let right = answer(trial.row);
    let own = trial.row.sample.as_ref().map(|sample| ("response", sample.response()));
    let truth = trial.row.task.reference.ground_truth.as_deref();
    let derived = FORMS.into_iter().flat_map(|(form, text)| {
        // A ground truth that is a whole solution may be an answer as it is.
        let whole = truth.filter(|whole| Some(*whole) != right.as_deref());
        let texts = right.as_deref().into_iter().chain(whole);
        texts.map(move |answer| (form, text.replace('@', answer))).collect::<Vec<_>>()
    });
    let mut best: Option<(f64, Golden)> = None;
    // A judger compares it with each.
    let nonsense = (!trial.plugin.judges()).then(|| trial.own(&trial.with_response(NONSENSE)));
    for (form, response) in own.into_iter().chain(derived) {
        let (said, nonsense) = match &nonsense {
            Some(nonsense) => (trial.own(&trial.with_response(&response)), nonsense.clone()),
            None => trial.pair(&response, NONSENSE),
        };
        let Some(score) = said.outcome.score() else { continue };
        let higher = nonsense.outcome.score().is_none_or(|nonsense| score > nonsense);
        if higher && best.as_ref().is_none_or(|(best, _)| score > *best) {
            let (right, wrong) = (right.clone(), right.as_deref().map(wrong));
            best = Some((score, Golden { response, form, said, right, wrong }));
        }
    }
    best.map(|(_, golden)| golden)
}
