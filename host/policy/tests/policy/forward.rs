use crate::reference::{Reference, softmax};
use crate::{config, device, max_difference, model, row, tokens};
use gavel_policy::{Kind, Model, ModelConfig, Tensor};

fn logits(model: &Model, ids: &Tensor) -> Tensor {
    model.logits(&model.hidden(ids).unwrap()).unwrap()
}

#[test]
fn logits_equal_the_reference_in_double() {
    for config in [
        config(),
        ModelConfig { tie_word_embeddings: false, ..config() },
        ModelConfig { num_key_value_heads: 4, rope_theta: 1e6, ..config() },
        ModelConfig { num_key_value_heads: 1, ..config() },
    ] {
        let model = model(config).to_kind(Kind::Double).unwrap();
        let ids = tokens(1, 13);
        let expected = Tensor::from_slice2(&Reference::new(&model).logits(&ids)).unsqueeze(0);
        let difference = max_difference(&logits(&model, &row(&ids)), &expected);
        assert!(difference < 1e-10, "{:?}: {difference}", model.config());
    }
}

#[test]
fn padding_changes_no_log_prob() {
    let model = model(config());
    let rows = [tokens(1, 9), tokens(2, 4), tokens(3, 1)];
    let padded: Vec<Tensor> = rows.iter().map(|ids| row(&[ids.clone(), vec![0; 9 - ids.len()]].concat())).collect();
    let together = logits(&model, &Tensor::cat(&padded, 0)).log_softmax(-1, None);
    for (index, ids) in rows.iter().enumerate() {
        let alone = logits(&model, &row(ids)).log_softmax(-1, None).squeeze_dim(0);
        let here = together.get(index as i64).narrow(0, 0, ids.len() as i64);
        assert!(max_difference(&here, &alone) < 1e-5, "row {index}");
    }
}

#[test]
fn gradients_equal_finite_differences() {
    let model = model(ModelConfig { tie_word_embeddings: false, ..config() }).to_kind(Kind::Double).unwrap();
    let ids = tokens(4, 7);
    let targets = row(&ids[1..]).squeeze_dim(0);
    let loss = || {
        let all = logits(&model, &row(&ids)).squeeze_dim(0).narrow(0, 0, 6);
        -all.log_softmax(-1, None).gather(1, &targets.unsqueeze(1), false).mean(None)
    };
    let reference = || {
        let all = Reference::new(&model).logits(&ids);
        -(0..6).map(|t| softmax(&all[t])[ids[t + 1] as usize].ln()).sum::<f64>() / 6.0
    };
    loss().backward();
    for (name, parameter) in model.parameters() {
        let (flat, gradient) = (parameter.detach().view([-1]), parameter.grad().view([-1]));
        let count = flat.size()[0];
        for index in [0, count / 3, count / 2, count - 1, i64::from(ids[0]) * 16 % count] {
            let value = flat.double_value(&[index]);
            let at = |change: f64| {
                let _ = flat.narrow(0, index, 1).fill_(value + change);
                reference()
            };
            let difference = (at(1e-5) - at(-1e-5)) / 2e-5;
            at(0.0);
            let exact = gradient.double_value(&[index]);
            assert!((exact - difference).abs() < 1e-8, "{name}[{index}]: {exact} against {difference}");
        }
    }
}

#[test]
fn a_clone_is_frozen_and_apart() {
    let model = model(config());
    let ids = row(&tokens(1, 5));
    let frozen = model.try_clone().unwrap();
    let before = logits(&frozen, &ids);
    assert_eq!(before, logits(&model, &ids));
    assert!(!before.requires_grad() && frozen.parameters().iter().all(|(_, parameter)| !parameter.requires_grad()));
    assert!(model.parameters().iter().all(|(_, parameter)| parameter.requires_grad()));
    let _ = tch::no_grad(|| model.parameters()[0].1.shallow_clone().fill_(0.0));
    assert_eq!(before, logits(&frozen, &ids));
    let mut other = Model::random(ModelConfig { num_hidden_layers: 1, ..config() }, 0, device()).unwrap();
    assert!(model.copy_to(&mut other).unwrap_err().to_string().contains("same configuration"));
}

#[test]
fn ids_of_a_wrong_shape_are_refused() {
    let error = model(config()).hidden(&Tensor::from_slice(&[1i64, 2])).unwrap_err().to_string();
    assert!(error.contains("[batch, time], not [2]"), "{error}");
}
