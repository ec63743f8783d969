use crate::parity::{checkpoints, load};
use crate::{config, device, max_difference, model, row, tokens};
use gavel_policy::{Kind, Model, ModelConfig, Moment, Packed, PackedRow, PolicyError, Stage, Tensor, TrainingPass};

/// Three prompts, of which one has four responses and one has two, and a separate row.
fn rows() -> Vec<PackedRow> {
    let lengths = [
        (None, 9),
        (None, 3),
        (None, 14),
        (Some(0), 5),
        (Some(0), 1),
        (Some(2), 5),
        (Some(0), 12),
        (Some(0), 5),
        (Some(2), 2),
    ];
    let row = |(seed, (after, length)): (usize, (Option<usize>, usize))| PackedRow {
        after,
        tokens: tokens(seed as u64, length),
    };
    lengths.into_iter().enumerate().map(row).collect()
}

/// The hidden states of a row of the pack, computed by itself.
fn alone(model: &Model, rows: &[PackedRow], index: usize) -> Tensor {
    let before = rows[index].after.map_or(&[][..], |after| &rows[after].tokens);
    let ids = [before, &rows[index].tokens].concat();
    let hidden = model.hidden(&row(&ids)).unwrap().squeeze_dim(0);
    hidden.narrow(0, before.len() as i64, rows[index].tokens.len() as i64)
}

#[test]
fn a_row_of_a_pack_is_what_it_is_alone_in_every_family() {
    for name in checkpoints() {
        let model = load(&name, Kind::Float).to_kind(Kind::Double).unwrap();
        let rows = rows();
        let packed = Packed::new(&rows, device()).unwrap();
        assert_eq!(packed.tokens(), 56);
        let hidden = model.hidden_packed(&packed).unwrap();
        for index in 0..rows.len() {
            let found = hidden.narrow(0, packed.start(index) as i64, rows[index].tokens.len() as i64);
            let difference = max_difference(&found, &alone(&model, &rows, index));
            assert!(difference < 1e-10, "{name}, row {index}: {difference}");
        }
    }
}

#[test]
fn a_pass_has_the_gradients_of_a_plain_one_with_and_without_checkpointing() {
    for (kind, limit) in [(Kind::Double, 1e-9), (Kind::Float, 1e-4)] {
        let model = model(ModelConfig { windows: vec![None, Some(6)], ..config() }).to_kind(kind).unwrap();
        assert_pass(&model, limit);
    }
}

fn assert_pass(model: &Model, limit: f64) {
    let rows = rows();
    let packed = Packed::new(&rows, device()).unwrap();
    let gradients = |backward: &dyn Fn()| -> Vec<Tensor> {
        let parameters: Vec<Tensor> = model.parameters().into_iter().map(|(_, parameter)| parameter).collect();
        parameters.iter().for_each(|parameter| parameter.shallow_clone().zero_grad());
        backward();
        parameters.iter().map(|parameter| parameter.grad().copy()).collect()
    };
    // A loss in two parts that differs from token to token.
    let loss = |hidden: &Tensor| hidden.sin().sum(None);
    let plain = gradients(&|| (0..rows.len()).for_each(|index| loss(&alone(model, &rows, index)).backward()));
    for checkpointing in [false, true] {
        let found = gradients(&|| {
            let pass = TrainingPass::new(model, &packed, checkpointing).unwrap();
            pass.hidden().split(20, 0).iter().for_each(|part| loss(part).backward());
            let mut stages = Vec::new();
            let mut complete = |moment| {
                let Moment::After(stage) = moment else { return Ok(()) };
                let of_stage = model.parameters().into_iter().filter(|(name, _)| Stage::of(name) == stage);
                stages.push((stage, of_stage.map(|(_, parameter)| parameter.grad().copy()).collect::<Vec<_>>()));
                Ok::<(), PolicyError>(())
            };
            pass.backward_in_stages(&mut complete).unwrap();
            assert!(
                stages.is_sorted_by_key(|(stage, _)| *stage)
                    && stages.len() == model.config().num_hidden_layers as usize + 2
            );
            for (stage, then) in stages {
                let now = model.parameters().into_iter().filter(|(name, _)| Stage::of(name) == stage);
                let now: Vec<Tensor> = now.map(|(_, parameter)| parameter.grad()).collect();
                assert!(now.iter().zip(&then).all(|(now, then)| now.equal(then)), "{stage:?} was not complete");
            }
        });
        // The embedding is also the head, which is not used here.
        for (a, b) in plain.iter().zip(&found) {
            assert!(max_difference(a, b) < limit, "{checkpointing}: {:?}", a.size());
        }
    }
    let error = TrainingPass::new(model, &packed, true).unwrap().backward().unwrap_err().to_string();
    assert_eq!(error, "no loss over the hidden states went backward");
}

#[test]
fn packs_that_make_no_sense_are_refused() {
    let row = |after, tokens: &[u32]| PackedRow { after, tokens: tokens.to_vec() };
    for (rows, says) in [
        (vec![], "there are no rows to pack"),
        (vec![row(None, &[1]), row(None, &[])], "row 1 of the pack has no tokens"),
        (vec![row(Some(3), &[1])], "row 0 of the pack follows another, but there are only 1 rows"),
        (vec![row(None, &[1]), row(Some(0), &[1]), row(Some(1), &[1])], "row 2 of the pack follows a row that itself"),
    ] {
        let error = Packed::new(&rows, device()).unwrap_err().to_string();
        assert!(error.starts_with(says), "{error}");
    }
}
