use crate::reference::{Reference, softmax};
use crate::{config, max_difference, model, row, tokens};
use gavel_policy::{Kind, Model, ModelConfig, Padding, Tensor};

fn logits(model: &Model, ids: &Tensor, padding: &Padding) -> Tensor {
    model.logits(&model.hidden(ids, padding).unwrap()).unwrap()
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
        let difference = max_difference(&logits(&model, &row(&ids), &Padding::Right), &expected);
        assert!(difference < 1e-10, "{:?}: {difference}", model.config());
    }
}

#[test]
fn padding_on_either_side_changes_no_log_prob() {
    let model = model(config());
    let rows = [tokens(1, 9), tokens(2, 4), tokens(3, 1)];
    for (padding, left) in [(Padding::Right, false), (Padding::Left(vec![9, 4, 1]), true)] {
        let padded: Vec<Tensor> = rows
            .iter()
            .map(|ids| {
                let pad = vec![0; 9 - ids.len()];
                row(&if left { [pad, ids.clone()].concat() } else { [ids.clone(), pad].concat() })
            })
            .collect();
        let together = logits(&model, &Tensor::cat(&padded, 0), &padding).log_softmax(-1, None);
        for (index, ids) in rows.iter().enumerate() {
            let alone = logits(&model, &row(ids), &Padding::Right).log_softmax(-1, None).squeeze_dim(0);
            let start = if left { 9 - ids.len() } else { 0 } as i64;
            let here = together.get(index as i64).narrow(0, start, ids.len() as i64);
            assert!(max_difference(&here, &alone) < 1e-5, "{padding:?}, row {index}");
        }
    }
}

#[test]
fn gradients_equal_finite_differences() {
    let model = model(ModelConfig { tie_word_embeddings: false, ..config() }).to_kind(Kind::Double).unwrap();
    let ids = tokens(4, 7);
    let targets = Tensor::from_slice(&ids[1..].iter().map(|&id| i64::from(id)).collect::<Vec<_>>());
    let loss = |padding: &Padding| {
        let all = logits(&model, &row(&ids), padding).squeeze_dim(0).narrow(0, 0, 6);
        -all.log_softmax(-1, None).gather(1, &targets.unsqueeze(1), false).mean(None)
    };
    let reference = || {
        let all = Reference::new(&model).logits(&ids);
        -(0..6).map(|t| softmax(&all[t])[ids[t + 1] as usize].ln()).sum::<f64>() / 6.0
    };
    for padding in [Padding::Right, Padding::Left(vec![7])] {
        let parameters = model.parameters();
        parameters.iter().for_each(|(_, parameter)| parameter.shallow_clone().zero_grad());
        loss(&padding).backward();
        for (name, parameter) in parameters {
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
                assert!(
                    (exact - difference).abs() < 1e-8,
                    "{padding:?}, {name}[{index}]: {exact} against {difference}"
                );
            }
        }
    }
}

#[test]
fn a_clone_is_frozen_and_apart() {
    let model = model(config());
    let ids = row(&tokens(1, 5));
    let frozen = model.try_clone().unwrap();
    let before = logits(&frozen, &ids, &Padding::Right);
    assert_eq!(before, logits(&model, &ids, &Padding::Right));
    assert!(!before.requires_grad() && frozen.parameters().iter().all(|(_, parameter)| !parameter.requires_grad()));
    assert!(model.parameters().iter().all(|(_, parameter)| parameter.requires_grad()));
    let _ = tch::no_grad(|| model.parameters()[0].1.shallow_clone().fill_(0.0));
    assert_eq!(before, logits(&frozen, &ids, &Padding::Right));
    let mut other =
        Model::random(ModelConfig { num_hidden_layers: 1, ..config() }, 0, gavel_policy::Device::Cpu).unwrap();
    assert!(model.copy_to(&mut other).unwrap_err().to_string().contains("same configuration"));
}

#[test]
fn batches_of_a_wrong_shape_are_refused() {
    let model = model(config());
    for (ids, padding, says) in [
        (Tensor::from_slice(&[1i64, 2]), Padding::Right, "[batch, time], not [2]"),
        (row(&[1, 2]), Padding::Left(vec![1, 1]), "2 lengths were given for a batch of 1"),
        (row(&[1, 2]), Padding::Left(vec![3]), "a row of 3 tokens does not fit into 2"),
    ] {
        let error = model.hidden(&ids, &padding).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}
