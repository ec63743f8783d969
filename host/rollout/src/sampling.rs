//! The default sampling of a model.

use gavel_policy::Sampling;
use gavel_text::Tokenizer;

type Set = fn(&mut Sampling, f64);

/// The sampling of the model's `generation_config.json`, as vLLM reads it, for at most `room` tokens: `temperature`,
/// `top_k`, `top_p`, `min_p`, `repetition_penalty` and `max_new_tokens`. A temperature that is missing or out of range
/// is 1; any other such value has no effect.
pub fn default_sampling(tokenizer: &Tokenizer, room: usize) -> Sampling {
    let mut sampling = Sampling::new(room, tokenizer.stop_ids().to_vec());
    let settings: [(&str, Set); 6] = [
        // Some files have 0.000001 to mean the most probable token.
        ("temperature", |to, t| to.temperature = if (0.0..1e-3).contains(&t) { 0.0 } else { t as f32 }),
        ("top_k", |to, k| to.top_k = Some(k as usize)),
        ("top_p", |to, p| to.top_p = p as f32),
        ("min_p", |to, p| to.min_p = p as f32),
        ("repetition_penalty", |to, factor| to.repetition_penalty = factor as f32),
        ("max_new_tokens", |to, most| to.max_tokens = to.max_tokens.min(most as usize)),
    ];
    for (name, set) in settings {
        let Some(number) = tokenizer.generation().get(name).and_then(serde_json::Value::as_f64) else { continue };
        let mut changed = sampling.clone();
        set(&mut changed, number);
        if changed.validate().is_ok() {
            sampling = changed;
        }
    }
    sampling
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_makers_are_asked_and_else_nothing_is_limited() {
        let dir = tempfile::tempdir().unwrap();
        Tokenizer::byte_level().save(dir.path()).unwrap();
        let defaults = |text: &str| {
            std::fs::write(dir.path().join("generation_config.json"), text).unwrap();
            default_sampling(&Tokenizer::load(dir.path()).unwrap(), 100)
        };
        assert_eq!(defaults("{}"), Sampling::new(100, vec![2]));
        let qwen =
            r#"{"temperature": 0.7, "top_k": 20, "top_p": 0.8, "repetition_penalty": 1.05, "max_new_tokens": 9}"#;
        let plain = Sampling::new(9, vec![2]);
        assert_eq!(
            defaults(qwen),
            Sampling { temperature: 0.7, top_k: Some(20), top_p: 0.8, repetition_penalty: 1.05, ..plain }
        );
        let odd = r#"{"temperature": 1e-6, "top_k": 0, "top_p": 0.0, "min_p": null, "max_new_tokens": 0}"#;
        assert_eq!(defaults(odd), Sampling::greedy(100, vec![2]));
    }
}
