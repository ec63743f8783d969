use super::*;
use crate::testing::{BARE, experiences, last_gradients, tiny, tiny_critic};

/// Rows with values around the critic's values, so that the clip counts for some, and with returns on both sides.
fn rows(critic: &Model) -> Vec<Experience> {
    let mut rows = experiences(&tiny(1), 1.0);
    let values = Trainer::new(critic, BARE, 1000).unwrap().values(critic, &rows).unwrap();
    for (number, (row, values)) in rows.iter_mut().zip(values).enumerate() {
        let shift = |at: usize| [0.0, 0.3, -0.3, 0.05][(at + number) % 4];
        row.values = values.iter().enumerate().map(|(at, value)| value + shift(at)).collect();
        row.returns = (0..values.len()).map(|at| [1.5, -1.0, 0.25][(at + number) % 3]).collect();
    }
    rows
}

const CONFIG: ValueLossConfig = ValueLossConfig { cliprange_value: 0.1 };

#[test]
fn the_loss_of_a_value_is_the_worse_of_two() {
    let tensor = |values: &[f64]| Tensor::from_slice(values);
    // Unmoved; moved within the clip; moved towards its return beyond the clip; moved away beyond it.
    let (values, old) = (tensor(&[1.0, 1.05, 1.5, 0.5]), tensor(&[1.0; 4]));
    let [loss, counts] = CONFIG.loss(&values, &old, &tensor(&[2.0; 4])).unwrap();
    let expected = [0.5, 0.5 * 0.95 * 0.95, 0.5 * 0.9 * 0.9, 0.5 * 1.5 * 1.5];
    for (found, expected) in Vec::<f64>::try_from(loss).unwrap().into_iter().zip(expected) {
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
    assert_eq!(Vec::<f64>::try_from(counts).unwrap(), [0.0, 0.0, 1.0, 0.0]);
}

#[test]
fn a_value_is_read_before_its_token() {
    let (critic, rows) = (tiny_critic(2), experiences(&tiny(1), 1.0));
    let found = Trainer::new(&critic, BARE, 7).unwrap().values(&critic, &rows).unwrap();
    let _guard = tch::no_grad_guard();
    for (row, found) in rows.iter().zip(found) {
        let ids: Vec<i64> = row.prompt.iter().chain(&row.response).map(|&id| i64::from(id)).collect();
        let hidden = critic.hidden(&Tensor::from_slice(&ids).unsqueeze(0)).unwrap();
        let all = Vec::<f64>::try_from(critic.values(&hidden).unwrap().flatten(0, -1)).unwrap();
        for (at, value) in found.into_iter().enumerate() {
            let expected = if row.loss_mask[at] { all[row.prompt.len() + at - 1] } else { 0.0 };
            assert!((f64::from(value) - expected).abs() < 1e-6, "{value} {expected}");
        }
    }
}

#[test]
fn the_gradient_is_that_of_the_loss_however_the_batch_is_split() {
    let critic = tiny_critic(2);
    let rows = rows(&critic);
    let step = |max_tokens: usize, rows: &[Experience], lr: f64| {
        let mut trainer = Trainer::new(&critic, BARE, max_tokens).unwrap();
        let stats = trainer.value_step(&critic, rows, &CONFIG, lr).unwrap();
        (stats.statistics, last_gradients(&critic, &trainer))
    };
    let (whole, gradients) = step(1000, &rows, 0.0);
    assert!(whole.get("clip_fraction").unwrap() > 0.0 && whole.get("grad_norm").unwrap() > 0.0, "{whole:?}");
    let mut turned = rows.clone();
    turned.reverse();
    for (max_tokens, rows) in [(1, &rows), (9, &turned)] {
        let (split, again) = step(max_tokens, rows, 0.0);
        assert!((split.loss() - whole.loss()).abs() < 1e-12);
        for ((name, a), (_, b)) in gradients.iter().zip(again) {
            assert!(a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12), "{name}");
        }
    }
    let _guard = tch::no_grad_guard();
    for ((name, parameter), (_, gradient)) in critic.parameters().into_iter().zip(&gradients) {
        let at = gradient.len() / 2;
        let mut element = parameter.detach().flatten(0, -1).narrow(0, at as i64, 1);
        let mut loss = |shift: f64| {
            let _ = element.g_add_scalar_(shift);
            let loss = tch::with_grad(|| step(1000, &rows, 0.0).0.loss());
            let _ = element.g_add_scalar_(-shift);
            loss
        };
        let difference = (loss(1e-5) - loss(-1e-5)) / 2e-5;
        assert!((difference - gradient[at]).abs() < 1e-6, "{name}: {difference} {}", gradient[at]);
    }
}

#[test]
fn a_critic_learns_the_returns() {
    let critic = tiny_critic(3);
    let mut rows = rows(&critic);
    let mut trainer = Trainer::new(&critic, crate::OptimizerConfig { max_grad_norm: 1.0, ..BARE }, 1000).unwrap();
    for _ in 0..200 {
        trainer.value_step(&critic, &rows, &ValueLossConfig { cliprange_value: 100.0 }, 0.02).unwrap();
    }
    let before = explained_variance(&rows).unwrap();
    let values = trainer.values(&critic, &rows).unwrap();
    rows.iter_mut().zip(values).for_each(|(row, values)| row.values = values);
    let after = explained_variance(&rows).unwrap();
    assert!(before < 0.5 && after > 0.8, "{before} {after}");
    rows.iter_mut().for_each(|row| row.returns.fill(1.0));
    assert_eq!(explained_variance(&rows), None);
}

#[test]
fn rows_without_returns_are_refused() {
    let critic = tiny_critic(2);
    let mut rows = rows(&critic);
    rows[2].returns[1] = f32::NAN;
    let error = Trainer::new(&critic, BARE, 1000).unwrap().value_step(&critic, &rows, &CONFIG, 0.1).unwrap_err();
    assert!(error.to_string().contains("has no finite returns for its 2 response tokens"), "{error}");
    let wrong = ValueLossConfig { cliprange_value: 0.0 }.validate().unwrap_err().to_string();
    assert_eq!(wrong, "cliprange_value must be a number above 0, not 0");
}
