//! What to write in place of an unknown key.

/// Keys of verl and TRL, and where the same is set here.
const ELSEWHERE: [(&str, &str); 76] = [
    ("actor_rollout_ref", "[model], [rollout] or [train]; docs/coming-from.md lists verl's keys"),
    ("adam_beta1", "train.optimizer.betas"),
    ("adam_beta2", "train.optimizer.betas"),
    ("adam_epsilon", "train.optimizer.eps"),
    ("adv_estimator", "train.algorithm"),
    ("beta", "train.loss.kl.coefficient"),
    ("clip_ratio", "train.loss.clip_low and train.loss.clip_high"),
    ("clip_ratio_high", "train.loss.clip_high"),
    ("clip_ratio_low", "train.loss.clip_low"),
    ("default_local_dir", "log.dir"),
    ("epsilon", "train.loss.clip_low and train.loss.clip_high"),
    ("epsilon_high", "train.loss.clip_high"),
    ("eval_steps", "train.validate_every"),
    ("experiment_name", "log.name"),
    ("grad_clip", "train.optimizer.max_grad_norm"),
    ("kl_coef", "train.kl_reward.coefficient"),
    ("kl_loss_coef", "train.loss.kl.coefficient"),
    ("kl_loss_type", "train.loss.kl.estimator"),
    ("lora_alpha", "model.lora.alpha"),
    ("lora_r", "model.lora.rank"),
    ("lora_rank", "model.lora.rank"),
    ("lora_target_modules", "model.lora.target_modules"),
    ("loss_agg_mode", "train.loss.aggregation"),
    ("loss_type", "train.loss.aggregation"),
    ("lr", "train.learning_rate"),
    ("lr_scheduler_type", "train.schedule"),
    ("lr_warmup_steps", "train.warmup_steps"),
    ("max_completion_length", "rollout.max_tokens"),
    ("max_grad_norm", "train.optimizer.max_grad_norm"),
    ("max_new_tokens", "rollout.max_tokens"),
    ("max_prompt_length", "data.max_prompt_tokens"),
    ("max_response_length", "rollout.max_tokens"),
    ("max_steps", "train.steps"),
    ("model_name_or_path", "model.path"),
    ("n", "rollout.group_size"),
    ("num_generations", "rollout.group_size"),
    ("output_dir", "log.dir"),
    ("ppo_max_token_len_per_gpu", "train.max_tokens_per_micro_batch"),
    ("ppo_mini_batch_size", "train.mini_batch_prompts"),
    ("reward_funcs", "[[reward]]"),
    ("reward_model", "[[reward]]"),
    ("reward_weights", "weight of each [[reward]]"),
    ("rollout_n", "rollout.group_size"),
    ("run_name", "log.name"),
    ("save_freq", "checkpoint.every"),
    ("save_steps", "checkpoint.every"),
    ("save_total_limit", "checkpoint.keep_last"),
    ("stop_strings", "rollout.stop"),
    ("test_freq", "train.validate_every"),
    ("torch_dtype", "model.dtype"),
    ("num_epochs", "train.epochs"),
    ("num_train_epochs", "train.epochs"),
    ("total_epochs", "train.epochs"),
    ("total_training_steps", "train.steps"),
    ("trainer", "[train], [checkpoint] or [log]; docs/coming-from.md lists verl's keys"),
    ("train_batch_size", "train.prompts_per_step"),
    ("train_dataset", "data.train"),
    ("train_files", "data.train"),
    ("eval_dataset", "data.validation"),
    ("val_files", "data.validation"),
    ("weight_decay", "train.optimizer.weight_decay"),
    ("delta", "train.loss.clip_ratio_c"),
    ("entropy_coef", "train.loss.entropy_coefficient"),
    ("entropy_coeff", "train.loss.entropy_coefficient"),
    ("importance_sampling_level", "train.loss.policy = \"gspo\""),
    ("loss_mode", "train.loss.policy"),
    ("mask_truncated_completions", "train.mask_truncated"),
    ("norm_adv_by_std_in_grpo", "train.advantage.scale"),
    ("sapo_temperature_neg", "train.loss.tau_neg"),
    ("sapo_temperature_pos", "train.loss.tau_pos"),
    ("ref_model_mixup_alpha", "train.reference.mixup"),
    ("ref_model_sync_steps", "train.reference.every"),
    ("scale_rewards", "train.advantage.scale"),
    ("target_kl", "target of train.kl_reward or train.loss.kl"),
    ("use_kl_in_reward", "train.kl_reward"),
    ("use_kl_loss", "train.loss.kl"),
];

/// How similar a key must be to be suggested; clap's threshold.
const SIMILAR: f64 = 0.7;
/// How similar a key must be to be suggested even though other libraries have the unknown key, as `betas` for `beta`.
const NEARLY_EQUAL: f64 = 0.9;

/// The hint for serde's message about an unknown field; empty for other messages and where nothing is similar.
pub(super) fn hint(what: &str) -> String {
    let Some((field, known)) = what.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) else {
        return String::new();
    };
    // Every second part of "`a`, `b`" is between the quotes.
    let known = known.split('`').skip(1).step_by(2);
    let closest = known
        .map(|name| (strsim::jaro(field, name), name))
        .filter(|(similarity, _)| *similarity > SIMILAR)
        .max_by(|a, b| a.0.total_cmp(&b.0));
    let is_nearly_equal = closest.is_some_and(|(similarity, _)| similarity > NEARLY_EQUAL);
    match (ELSEWHERE.iter().find(|(name, _)| *name == field && !is_nearly_equal), closest) {
        (Some((_, here)), _) => format!("\nhint: the name here is {here}"),
        (None, Some((_, name))) => format!("\nhint: did you mean `{name}`?"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_similar_key_or_the_name_here_is_suggested() {
        let hint = |field: &str| {
            hint(&format!("unknown field `{field}`, expected one of `steps`, `learning_rate`, `schedule`"))
        };
        assert_eq!(hint("learning_rte"), "\nhint: did you mean `learning_rate`?");
        assert_eq!(hint("setps"), "\nhint: did you mean `steps`?");
        assert_eq!(hint("lr"), "\nhint: the name here is train.learning_rate");
        assert_eq!(hint("num_generations"), "\nhint: the name here is rollout.group_size");
        assert_eq!(hint("zzz"), "");
        assert_eq!(super::hint("unknown field `beta`, expected `betas` or `eps`"), "\nhint: did you mean `betas`?");
        assert_eq!(super::hint("unknown field `x`, there are no fields"), "");
        assert_eq!(super::hint("unknown field `pth`, expected `path` or `init`"), "\nhint: did you mean `path`?");
        assert_eq!(super::hint("missing field `steps`"), "");
    }

    #[test]
    fn the_page_for_users_of_other_libraries_has_every_key() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/coming-from.md");
        let page = std::fs::read_to_string(page).unwrap();
        for (name, _) in ELSEWHERE {
            assert!(page.contains(&format!("`{name}`")) || page.contains(&format!("`{name}.")), "{name}");
        }
    }
}
