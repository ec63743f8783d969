use super::*;

/// A row with these ratios of proximal to behaviour; `None` if the policy did not write the token.
fn row(ratios: &[Option<f32>]) -> Experience {
    Experience {
        loss_mask: ratios.iter().map(Option::is_some).collect(),
        logprobs: vec![-1.0; ratios.len()],
        proximal: ratios.iter().map(|ratio| ratio.map_or(0.0, |ratio| ratio.ln() - 1.0)).collect(),
        ..Default::default()
    }
}

/// Products 3, 0.4 and 1, geometric means √3, 0.4 and 1; the last row has nothing to learn from.
fn mini_batch() -> Vec<Experience> {
    vec![row(&[Some(5.0), None, Some(0.6)]), row(&[Some(0.4)]), row(&[Some(1.0); 3]), row(&[None, None])]
}

fn ratios(rows: &[Experience]) -> Vec<Ratios> {
    rows.iter().map(Ratios::of).collect()
}

fn correction(text: &str) -> Correction {
    let config: OffPolicyConfig = toml::from_str(text).unwrap();
    Correction::new(&config, &ratios(&mini_batch()))
}

fn assert_weights(text: &str, expected: [&[f64]; 4]) {
    let found = correction(text).weights;
    for (row, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert_eq!(found.len(), expected.len(), "{text}, row {row}");
        for (found, expected) in found.iter().zip(expected) {
            assert!((found - expected).abs() < 1e-6, "{text}, row {row}: {found} is not {expected}");
        }
    }
}

fn assert_number(text: &str, name: &str, expected: Option<f64>) {
    let found = correction(text).statistics.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value);
    let is_close = match (found, expected) {
        (Some(found), Some(expected)) => (found - expected).abs() < 1e-6,
        (found, expected) => found == expected,
    };
    assert!(is_close, "{text}, {name}: {found:?} is not {expected:?}");
}

#[test]
fn a_weight_is_the_ratio_up_to_the_threshold() {
    let ones: [&[f64]; 4] = [&[1.0, 0.0, 1.0], &[1.0], &[1.0; 3], &[0.0; 2]];
    assert_weights("rollout_is = 'none'", ones);
    assert_weights("", [&[2.0, 0.0, 0.6], &[0.4], &[1.0; 3], &[0.0; 2]]);
    assert_weights("rollout_is_threshold = 4.0", [&[4.0, 0.0, 0.6], &[0.4], &[1.0; 3], &[0.0; 2]]);
    assert_weights("rollout_is = 'sequence'", [&[2.0, 0.0, 2.0], &[0.4], &[1.0; 3], &[0.0; 2]]);
    assert_number("", "off_policy/truncated", Some(1.0 / 6.0));
    assert_number("rollout_is = 'sequence'", "off_policy/truncated", Some(2.0 / 6.0));
    assert_number("rollout_is = 'none'", "off_policy/truncated", None);
}

#[test]
fn what_is_out_of_bounds_has_the_weight_0() {
    let is = "rollout_is = 'none'\n";
    let rs = |more: &str| format!("{is}{more}");
    // A ratio equal to a bound is kept.
    assert_weights(&rs("rollout_rs = 'token_k1'"), [&[0.0, 0.0, 1.0], &[0.0], &[1.0; 3], &[0.0; 2]]);
    assert_weights(&rs("rollout_rs = 'seq_sum_k1'"), [&[0.0; 3], &[0.0], &[1.0; 3], &[0.0; 2]]);
    let wide = rs("rollout_rs = 'seq_sum_k1'\nrollout_rs_threshold = 3.5");
    assert_weights(&wide, [&[1.0, 0.0, 1.0], &[1.0], &[1.0; 3], &[0.0; 2]]);
    let low = rs("rollout_rs = 'seq_mean_k1'\nrollout_rs_threshold_lower = 0.3\nrollout_rs_threshold = 1.2");
    assert_weights(&low, [&[0.0; 3], &[1.0], &[1.0; 3], &[0.0; 2]]);
    let veto = rs("rollout_token_veto_threshold = 0.45");
    assert_weights(&veto, [&[1.0, 0.0, 1.0], &[0.0], &[1.0; 3], &[0.0; 2]]);
    assert_weights(
        "rollout_rs = 'token_k1'\nrollout_rs_threshold = 8.0",
        [&[2.0, 0.0, 0.6], &[0.4], &[1.0; 3], &[0.0; 2]],
    );

    assert_number(&rs("rollout_rs = 'token_k1'"), "off_policy/rejected", Some(2.0 / 6.0));
    assert_number(&rs("rollout_rs = 'token_k1'"), "off_policy/rejected_sequences", Some(2.0 / 3.0));
    assert_number(&rs("rollout_rs = 'seq_sum_k1'"), "off_policy/rejected", Some(3.0 / 6.0));
    assert_number(&veto, "off_policy/rejected_sequences", Some(1.0 / 3.0));
    assert_number("", "off_policy/rejected", None);
}

#[test]
fn normalised_weights_have_the_mean_1_over_what_has_one() {
    let mean = (2.0 + 0.6 + 0.4 + 3.0) / 6.0;
    let token = "rollout_is_batch_normalize = true";
    assert_weights(token, [&[2.0 / mean, 0.0, 0.6 / mean], &[0.4 / mean], &[1.0 / mean; 3], &[0.0; 2]]);
    let mean = (2.0 + 0.4 + 1.0) / 3.0;
    let sequence = "rollout_is = 'sequence'\nrollout_is_batch_normalize = true";
    assert_weights(sequence, [&[2.0 / mean, 0.0, 2.0 / mean], &[0.4 / mean], &[1.0 / mean; 3], &[0.0; 2]]);
}

#[test]
fn the_effective_sample_size_is_a_share_of_the_tokens() {
    let name = "off_policy/effective_sample_size";
    let squares = 4.0 + 0.36 + 0.16 + 3.0;
    assert_number("", name, Some((2.0f64 + 0.6 + 0.4 + 3.0).powi(2) / (6.0 * squares)));
    // Half of the tokens are left, with equal weights.
    assert_number("rollout_is = 'none'\nrollout_rs = 'seq_sum_k1'", name, Some(0.5));
    assert_number("rollout_is = 'none'", name, None);
}

#[test]
fn the_mismatch_is_that_of_the_definitions() {
    let ratios = [5.0f64, 0.6, 0.4, 1.0, 1.0, 1.0];
    let mean = |value: &dyn Fn(f64) -> f64| ratios.iter().map(|ratio| value(*ratio)).sum::<f64>() / 6.0;
    for text in ["", "rollout_is = 'none'"] {
        assert_number(text, "off_policy/kl", Some(-mean(&f64::ln)));
        assert_number(text, "off_policy/k3_kl", Some(mean(&|ratio| ratio - 1.0 - ratio.ln())));
        assert_number(text, "off_policy/chi2_token", Some(mean(&|ratio| ratio * ratio) - 1.0));
        assert_number(text, "off_policy/chi2_seq", Some((9.0 + 0.16 + 1.0) / 3.0 - 1.0));
    }
}

#[test]
fn ratios_beyond_floating_point_stay_finite() {
    let rows = [Experience {
        proximal: vec![0.0; 40],
        logprobs: vec![-50.0; 40],
        loss_mask: vec![true; 40],
        ..Default::default()
    }];
    let config: OffPolicyConfig = toml::from_str("rollout_is = 'sequence'\nrollout_is_threshold = 1e300").unwrap();
    let found = Correction::new(&config, &ratios(&rows));
    assert!(found.weights[0].iter().all(|weight| (weight.ln() - MAX_LOG_RATIO).abs() < 1e-9));
    assert!(found.statistics.iter().all(|(_, value)| value.is_finite()), "{:?}", found.statistics);
}
