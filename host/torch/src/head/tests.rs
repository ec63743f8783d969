use super::*;

/// Numbers of this shape between -1 and 1 that look random, in 64 bits.
fn numbers(seed: i64, shape: &[i64]) -> Tensor {
    let count: i64 = shape.iter().product();
    let numbers: Vec<f64> = (0..count).map(|i| ((i * 37 + seed * 101) as f64 * 0.7391).sin()).collect();
    Tensor::from_slice(&numbers).view(shape)
}

fn tokens(count: i64, vocab: i64) -> Tensor {
    Tensor::from_slice(&(0..count).map(|at| (at * 7 + at * at) % vocab).collect::<Vec<_>>())
}

/// Log-probabilities, entropies, sums of squared probabilities, and the most probable tokens, by libtorch's operations.
fn plain(hidden: &Tensor, head: &Tensor, targets: &Tensor, temperature: f64) -> [Tensor; 4] {
    let all = (hidden.linear(head, None::<&Tensor>) / temperature).log_softmax(-1, None::<Kind>);
    let own = all.gather(-1, &targets.unsqueeze(-1), false).squeeze_dim(-1);
    let entropies = -(all.exp() * &all).sum_dim_intlist([-1i64].as_slice(), false, None::<Kind>);
    let squares = all.exp().square().sum_dim_intlist([-1i64].as_slice(), false, None::<Kind>);
    [own, entropies, squares, all.argmax(-1, false)]
}

fn assert_close(found: &Tensor, expected: &Tensor, tolerance: f64, what: &str) {
    assert_eq!(found.size(), expected.size(), "{what}");
    if expected.numel() > 0 {
        let difference = (found.to_kind(Kind::Double) - expected).abs().max().double_value(&[]);
        let largest = expected.abs().max().double_value(&[]);
        assert!(difference <= tolerance * largest, "{what}: {difference} of {largest}");
    }
}

/// Asserts that values and gradients, in chunks of `chunk` tokens and with numbers of `kind`, agree with libtorch's
/// operations in 64 bits.
fn assert_like_libtorch(hidden: &Tensor, head: &Tensor, targets: &Tensor, temperature: f64, chunk: i64, kind: Kind) {
    let tolerance = match kind {
        Kind::Double => 1e-12,
        Kind::Float => 5e-6,
        _ => 0.03,
    };
    let [hidden, head] = [hidden, head].map(|x| x.to_kind(kind).to_kind(Kind::Double));
    let count = targets.numel() as i64;
    let (weights, of_entropies) = (numbers(5, &[count]), numbers(6, &[count]));
    for has_entropy in [false, true] {
        let leaf = |x: &Tensor, kind| x.detach().to_kind(kind).set_requires_grad(true);
        let expected = [leaf(&hidden, Kind::Double), leaf(&head, Kind::Double)];
        let [own, entropies, squares, best] = plain(&expected[0], &expected[1], targets, temperature);
        let bonus = if has_entropy { entropies.dot(&of_entropies) } else { Tensor::from(0.0) };
        (own.dot(&weights) + bonus).backward();

        let found = [leaf(&hidden, kind), leaf(&head, kind)];
        for start in (0..count).step_by(chunk as usize) {
            let part = |x: &Tensor| x.narrow(0, start, chunk.min(count - start));
            let of = |beside| {
                token_logprobs(&part(&found[0]), &found[1], &part(targets), temperature, beside, Logits::Narrow)
                    .unwrap()
            };
            let TokenLogprobs { logprobs, beside } = of(Beside::Entropies);
            assert_eq!(logprobs.kind(), if kind == Kind::Double { kind } else { Kind::Float });
            assert_close(&logprobs, &part(&own), tolerance, "log-probabilities");
            assert_close(&beside, &part(&entropies), tolerance, "entropies");
            let others = [Beside::SquaredProbabilities, Beside::AreMostProbable].map(|beside| of(beside).beside);
            assert!(others.iter().all(|x| !x.requires_grad()));
            assert_close(&others[0], &part(&squares), tolerance, "squares");
            if kind != Kind::BFloat16 {
                assert_eq!(others[1], part(&best).eq_tensor(&part(targets)));
            }
            let alone = tch::no_grad(|| of(Beside::Nothing));
            assert!(!alone.beside.defined() && !alone.logprobs.requires_grad() && alone.logprobs == logprobs.detach());
            let mut loss = logprobs.dot(&part(&weights).to_kind(logprobs.kind()));
            if has_entropy {
                loss += beside.dot(&part(&of_entropies).to_kind(beside.kind()));
            }
            loss.backward();
        }
        for (index, what) in ["hidden states", "head"].iter().enumerate() {
            let what = format!("gradient of the {what}, entropy {has_entropy}, {kind:?}");
            assert_close(&found[index].grad(), &expected[index].grad(), tolerance, &what);
        }
    }
}

#[test]
fn values_and_gradients_are_those_of_libtorch() {
    // Too little to be worth a thread, and more; widths that are not whole vectors or blocks; one chunk and several.
    for (count, width, vocab, temperature, chunk) in [
        (1, 3, 2, 1.0, 1),
        (5, 8, 37, 0.7, 2),
        (300, 32, 513, 1.3, 128),
        (70, 16, 5000, 1.0, 70),
        (1100, 4, 30, 0.9, 1100),
    ] {
        let (hidden, head) = (numbers(1, &[count, width]) * 2.0, numbers(2, &[vocab, width]));
        for kind in [Kind::Float, Kind::Double, Kind::BFloat16] {
            assert_like_libtorch(&hidden, &head, &tokens(count, vocab), temperature, chunk, kind);
        }
    }
}

#[test]
fn a_vocabulary_of_one_is_certain() {
    for kind in [Kind::Float, Kind::Double, Kind::BFloat16] {
        let [hidden, head] = [[4, 3], [1, 3]].map(|shape| numbers(1, &shape).to_kind(kind).set_requires_grad(true));
        let found = token_logprobs(&hidden, &head, &tokens(4, 1), 0.5, Beside::Entropies, Logits::Narrow).unwrap();
        (&found.logprobs + &found.beside).sum(Kind::Double).backward();
        for x in [found.logprobs, found.beside, hidden.grad(), head.grad()] {
            assert_eq!(x.abs().max().double_value(&[]), 0.0);
        }
    }
}

#[test]
fn logits_may_be_far_apart_and_large() {
    let far = [-1e30, 0.0, 3.0, -1e4, 2.5, -100.0, -45.0, -1e38];
    let large = [1e4, 9990.0, -3e38, 1e4 + 2.0, 0.0, 9999.0, 3.0, -1e38];
    for logits in [far, large] {
        for target in 0..8i64 {
            for kind in [Kind::Float, Kind::Double] {
                let head = Tensor::from_slice(&logits).view([8, 1]);
                let targets = Tensor::from_slice(&[target]);
                let hidden = Tensor::from_slice(&[1.0]).view([1, 1]);
                let leaf = |kind| head.detach().copy().to_kind(kind).set_requires_grad(true);
                let (expected, found) = (leaf(Kind::Double), leaf(kind));
                let [own, entropy, ..] = plain(&hidden, &expected, &targets, 1.0);
                (&own + &entropy).sum(Kind::Double).backward();
                let of =
                    token_logprobs(&hidden.to_kind(kind), &found, &targets, 1.0, Beside::Entropies, Logits::Narrow)
                        .unwrap();
                (&of.logprobs + &of.beside).sum(Kind::Double).backward();
                assert_close(&of.logprobs, &own, 5e-6, "log-probability");
                assert_close(&of.beside, &entropy, 5e-6, "entropy");
                assert_close(&found.grad(), &expected.grad(), 5e-6, "gradient");
            }
        }
    }
}

#[test]
fn the_entropy_and_its_gradient_are_those_of_the_distribution() {
    let probabilities = [0.5f64, 0.25, 0.25];
    let head = Tensor::from_slice(&probabilities.map(|p| p.ln() + 3.0)).view([3, 1]).set_requires_grad(true);
    let hidden = Tensor::from_slice(&[1.0]).view([1, 1]);
    let expected: f64 = -probabilities.iter().map(|p| p * p.ln()).sum::<f64>();
    let found =
        token_logprobs(&hidden, &head, &Tensor::from_slice(&[0i64]), 1.0, Beside::Entropies, Logits::Narrow).unwrap();
    assert!((found.beside.double_value(&[0]) - expected).abs() < 1e-12);
    found.beside.sum(Kind::Double).backward();
    // −p · (ln p + H)
    for (at, p) in probabilities.iter().enumerate() {
        assert!((head.grad().double_value(&[at as i64, 0]) + p * (p.ln() + expected)).abs() < 1e-12);
    }
}

#[test]
fn a_frozen_head_has_no_gradient_and_a_head_may_be_all_that_has_one() {
    for kind in [Kind::Float, Kind::Double, Kind::BFloat16] {
        let (hidden, head) = (numbers(1, &[6, 4]).to_kind(kind), numbers(2, &[9, 4]).to_kind(kind));
        let logprobs =
            || token_logprobs(&hidden, &head, &tokens(6, 9), 1.0, Beside::Nothing, Logits::Narrow).unwrap().logprobs;
        let _ = hidden.set_requires_grad(true);
        logprobs().sum(Kind::Double).backward();
        assert!(hidden.grad().defined() && !head.grad().defined());
        let [_, _] = [hidden.set_requires_grad(false), head.set_requires_grad(true)];
        let before = hidden.grad().copy();
        logprobs().sum(Kind::Double).backward();
        assert!(hidden.grad() == before && head.grad().defined());
    }
}

#[test]
fn a_head_that_is_the_embedding_too_gets_both_gradients() {
    let ids = tokens(6, 9);
    let gradient = |of: &dyn Fn(&Tensor, &Tensor) -> Tensor| {
        let embedding = numbers(2, &[9, 4]).set_requires_grad(true);
        for _ in 0..2 {
            let hidden = Tensor::embedding(&embedding, &ids, -1, false, false);
            of(&hidden, &embedding).sum(Kind::Double).backward();
        }
        embedding.grad()
    };
    let found = gradient(&|hidden, head| {
        token_logprobs(hidden, head, &ids, 0.8, Beside::Nothing, Logits::Narrow).unwrap().logprobs
    });
    let expected = gradient(&|hidden, head| {
        let [own, ..] = plain(hidden, head, &ids, 0.8);
        own
    });
    assert_close(&found, &expected, 1e-12, "gradient");
}

#[test]
fn a_head_that_is_computed_gets_its_gradient_through_that() {
    let (base, hidden) = (numbers(2, &[9, 4]).set_requires_grad(true), numbers(1, &[6, 4]));
    let found = token_logprobs(&hidden, &(&base * 2.0), &tokens(6, 9), 1.0, Beside::Nothing, Logits::Narrow).unwrap();
    found.logprobs.sum(Kind::Double).backward();
    let expected = numbers(2, &[9, 4]).set_requires_grad(true);
    let [own, ..] = plain(&hidden, &(&expected * 2.0), &tokens(6, 9), 1.0);
    own.sum(Kind::Double).backward();
    assert_close(&base.grad(), &expected.grad(), 1e-12, "gradient");
}

#[test]
fn of_equally_probable_tokens_the_first_is_the_most_probable() {
    let head = Tensor::from_slice(&[0.5f32, 2.0, -1.0, 2.0]).view([4, 1]);
    let hidden = Tensor::from_slice(&[1.0f32; 4]).view([4, 1]);
    for kind in [Kind::Float, Kind::Double] {
        let targets = Tensor::from_slice(&[0i64, 1, 2, 3]);
        let found = token_logprobs(
            &hidden.to_kind(kind),
            &head.to_kind(kind),
            &targets,
            1.0,
            Beside::AreMostProbable,
            Logits::Narrow,
        );
        assert_eq!(Vec::<bool>::try_from(found.unwrap().beside).unwrap(), [false, true, false, false]);
    }
}

#[test]
fn what_is_no_number_stays_so() {
    let hidden = numbers(1, &[2, 4]).to_kind(Kind::Float);
    let _ = hidden.get(1).get(2).fill_(f64::NAN);
    let hidden = hidden.set_requires_grad(true);
    let head = numbers(2, &[40, 4]).to_kind(Kind::Float);
    let found = token_logprobs(&hidden, &head, &tokens(2, 40), 1.0, Beside::Entropies, Logits::Narrow).unwrap();
    (&found.logprobs + &found.beside).sum(Kind::Double).backward();
    for x in [found.logprobs, found.beside, hidden.grad()] {
        let rows = [0, 1].map(|row| bool::try_from(x.get(row).isfinite().all()).unwrap());
        assert_eq!(rows, [true, false]);
    }
}

#[test]
fn no_tokens_are_no_error() {
    for kind in [Kind::Float, Kind::Double] {
        let (hidden, head) = (numbers(1, &[0, 4]).to_kind(kind), numbers(2, &[9, 4]).to_kind(kind));
        let found = token_logprobs(&hidden, &head, &tokens(0, 9), 1.0, Beside::Entropies, Logits::Narrow).unwrap();
        assert_eq!((found.logprobs.size(), found.beside.size()), (vec![0], vec![0]));
    }
}

#[test]
fn what_does_not_fit_and_a_second_backward_pass_are_errors() {
    let (hidden, head) = (numbers(1, &[3, 4]).to_kind(Kind::Float), numbers(2, &[9, 4]).to_kind(Kind::Float));
    let of = |hidden: &Tensor, targets: &[i64]| {
        token_logprobs(hidden, &head, &Tensor::from_slice(targets), 1.0, Beside::Nothing, Logits::Narrow)
    };
    for targets in [&[0, 1][..], &[0, 1, 9], &[0, -1, 2]] {
        assert!(of(&hidden, targets).is_err(), "{targets:?}");
    }
    assert!(of(&numbers(1, &[3, 5]).to_kind(Kind::Float), &[0, 1, 2]).is_err());
    assert!(of(&numbers(1, &[3, 4]), &[0, 1, 2]).is_err());
    let hidden = hidden.set_requires_grad(true);
    let loss = of(&hidden, &[0, 1, 2]).unwrap().logprobs.sum(Kind::Float);
    let backward = || Tensor::f_run_backward(&[&loss], &[&hidden], true, false);
    assert!(backward().is_ok());
    assert!(backward().unwrap_err().to_string().contains("modified by an inplace operation"));
}

/// Changes of the logits of `targets`, of which the first is token `start` of all, and the same as tensors: what is
/// added, the penalties, and which tokens are excluded. One token in four has no change.
fn some_changes(targets: &[i64], start: usize, vocab: i64) -> (LogitChanges, [Tensor; 3]) {
    let mut changes = LogitChanges::new(vocab);
    let size = targets.len() * vocab as usize;
    let [mut biases, mut penalties, mut excluded] = [vec![0.0; size], vec![1.0; size], vec![0.0; size]];
    for (row, target) in targets.iter().enumerate() {
        let at = row + start;
        let place = |token: &u32| row * vocab as usize + *token as usize;
        let is_some = |token: &u32, seed: usize| (*token as usize * 7 + at + seed).is_multiple_of(3);
        let some = |seed: usize| -> Vec<u32> { (0..vocab as u32).filter(|token| is_some(token, seed)).collect() };
        if matches!(at % 4, 1 | 3) {
            let own: Vec<_> = some(0).into_iter().map(|token| (token, (token % 5) as f32 * 0.5 - 1.0)).collect();
            changes.bias(row, &own).unwrap();
            own.iter().for_each(|(token, bias)| biases[place(token)] = f64::from(*bias));
        }
        if matches!(at % 4, 2 | 3) {
            let (seen, penalty) = (some(1), if at % 8 < 4 { 1.25 } else { 0.5 });
            changes.penalise(row, &seen, penalty).unwrap();
            seen.iter().for_each(|token| penalties[place(token)] = f64::from(penalty));
        }
        let is_kept = |token: &u32| i64::from(*token) == *target || is_some(token, 2);
        match at % 4 {
            1 | 3 => {
                let kept: Vec<u32> = (0..vocab as u32).filter(is_kept).collect();
                changes.keep_only(row, &kept).unwrap();
                (0..vocab as u32).filter(|token| !is_kept(token)).for_each(|token| excluded[place(&token)] = 1.0);
            }
            2 => {
                let own: Vec<u32> = some(2).into_iter().filter(|token| i64::from(*token) != *target).collect();
                changes.exclude(row, &own).unwrap();
                own.iter().for_each(|token| excluded[place(token)] = 1.0);
            }
            _ => {}
        }
    }
    let shape = [targets.len() as i64, vocab];
    (changes, [biases, penalties, excluded].map(|numbers| Tensor::from_slice(&numbers).view(shape)))
}

/// As [`plain`], of changed logits, without the most probable tokens.
fn plain_changed(
    hidden: &Tensor,
    head: &Tensor,
    targets: &Tensor,
    temperature: f64,
    [biases, penalties, excluded]: &[Tensor; 3],
) -> [Tensor; 3] {
    let logits = hidden.linear(head, None::<&Tensor>) + biases;
    let logits = (&logits / penalties).where_self(&logits.gt(0.0), &(&logits * penalties));
    let excluded = excluded.gt(0.0);
    let all = (logits / temperature).masked_fill(&excluded, f64::NEG_INFINITY).log_softmax(-1, None::<Kind>);
    let own = all.gather(-1, &targets.unsqueeze(-1), false).squeeze_dim(-1);
    let products = all.exp() * all.masked_fill(&excluded, 0.0);
    let entropies = -products.sum_dim_intlist([-1i64].as_slice(), false, None::<Kind>);
    let squares = all.exp().square().sum_dim_intlist([-1i64].as_slice(), false, None::<Kind>);
    [own, entropies, squares]
}

/// Asserts that values and gradients under changed logits agree with libtorch's operations in 64 bits.
fn assert_changed_like_libtorch(count: i64, width: i64, vocab: i64, temperature: f64, chunk: i64, kind: Kind) {
    let tolerance = match kind {
        Kind::Double => 1e-12,
        Kind::Float => 1e-5,
        // Logits of 16 bits are rounded before the temperature divides them.
        _ => f64::max(0.06, 0.015 / temperature),
    };
    let [hidden, head] =
        [numbers(1, &[count, width]) * 2.0, numbers(2, &[vocab, width])].map(|x| x.to_kind(kind).to_kind(Kind::Double));
    let targets = tokens(count, vocab);
    let of_targets = Vec::<i64>::try_from(&targets).unwrap();
    let (weights, of_entropies) = (numbers(5, &[count]), numbers(6, &[count]));
    let leaf = |x: &Tensor, kind| x.detach().to_kind(kind).set_requires_grad(true);
    let expected = [leaf(&hidden, Kind::Double), leaf(&head, Kind::Double)];
    let (all_changes, dense) = some_changes(&of_targets, 0, vocab);
    let [own, entropies, squares] = plain_changed(&expected[0], &expected[1], &targets, temperature, &dense);
    (own.dot(&weights) + entropies.dot(&of_entropies)).backward();

    let found = [leaf(&hidden, kind), leaf(&head, kind)];
    for start in (0..count).step_by(chunk as usize) {
        let length = chunk.min(count - start);
        let part = |x: &Tensor| x.narrow(0, start, length);
        let (changes, _) = some_changes(&of_targets[start as usize..(start + length) as usize], start as usize, vocab);
        let of = |beside, changes: &LogitChanges| {
            let (hidden, targets) = (part(&found[0]), part(&targets));
            changed_logprobs(&hidden, &found[1], &targets, temperature, beside, Logits::Narrow, changes).unwrap()
        };
        let TokenLogprobs { logprobs, beside } = of(Beside::Entropies, &changes);
        assert_close(&logprobs, &part(&own), tolerance, "log-probabilities");
        assert_close(&beside, &part(&entropies), tolerance, "entropies");
        assert_close(&of(Beside::SquaredProbabilities, &changes).beside, &part(&squares), tolerance, "squares");
        let unchanged = of(Beside::Nothing, &LogitChanges::new(vocab)).logprobs;
        for row in (0..length).filter(|row| (row + start) % 4 == 0) {
            assert!(unchanged.get(row) == logprobs.get(row), "a token without changes has other bits");
        }
        let loss = logprobs.dot(&part(&weights).to_kind(logprobs.kind()))
            + beside.dot(&part(&of_entropies).to_kind(beside.kind()));
        loss.backward();
    }
    for (index, what) in ["hidden states", "head"].iter().enumerate() {
        let what = format!("gradient of the {what}, {kind:?} at {temperature}");
        assert_close(&found[index].grad(), &expected[index].grad(), tolerance, &what);
    }
    // Without gradients, some tokens at a time.
    let alone = tch::no_grad(|| {
        let (hidden, head) = (&found[0], &found[1]);
        changed_logprobs(hidden, head, &targets, temperature, Beside::Nothing, Logits::Narrow, &all_changes).unwrap()
    });
    assert_close(&alone.logprobs, &own, tolerance, "log-probabilities without gradients");
}

#[test]
fn values_and_gradients_of_changed_logits_are_those_of_libtorch() {
    for (count, width, vocab, temperature, chunk) in [
        (5, 8, 37, 0.1, 2),
        (1, 3, 2, 1.0, 1),
        (300, 32, 513, 1.0, 128),
        (70, 16, 700, 2.0, 70),
        (1100, 4, 30, 0.7, 1100),
    ] {
        for kind in [Kind::Float, Kind::Double, Kind::BFloat16] {
            assert_changed_like_libtorch(count, width, vocab, temperature, chunk, kind);
        }
    }
}

#[test]
fn probabilities_of_what_can_be_drawn_sum_to_one() {
    let (hidden, head) = (numbers(1, &[1, 8]).to_kind(Kind::Float), numbers(2, &[9, 8]).to_kind(Kind::Float) * 3.0);
    let mut changes = LogitChanges::new(9);
    let kept = [0, 1, 4, 8];
    for row in 0..9 {
        changes.bias(row, &[(4, 1.5)]).unwrap();
        changes.penalise(row, &[1, 2, 3], 1.7).unwrap();
        changes.keep_only(row, &kept).unwrap();
    }
    let targets = Tensor::arange(9i64, (Kind::Int64, tch::Device::Cpu));
    let hidden = hidden.repeat([9, 1]);
    let of = |changes: &LogitChanges| {
        let found = changed_logprobs(&hidden, &head, &targets, 0.6, Beside::Nothing, Logits::Narrow, changes);
        Vec::<f32>::try_from(found.unwrap().logprobs.exp()).unwrap()
    };
    let probabilities = of(&changes);
    for (token, probability) in probabilities.iter().enumerate() {
        assert_eq!(*probability > 0.0, kept.contains(&(token as u32)), "{probabilities:?}");
    }
    let sum: f64 = probabilities.iter().map(|&p| f64::from(p)).sum();
    assert!((sum - 1.0).abs() < 1e-6, "{sum}");
    let whole = of(&LogitChanges::default());
    assert!(kept.iter().map(|token| whole[*token as usize]).sum::<f32>() < 0.9, "{whole:?}");
}

#[test]
fn changes_of_other_logits_are_refused() {
    let (hidden, head) = (numbers(1, &[2, 4]), numbers(2, &[9, 4]));
    let error = |changes: &LogitChanges| {
        let targets = Tensor::from_slice(&[0i64, 1]);
        changed_logprobs(&hidden, &head, &targets, 1.0, Beside::Nothing, Logits::Narrow, changes)
            .unwrap_err()
            .to_string()
    };
    let changes = |vocab, row| {
        let mut changes = LogitChanges::new(vocab);
        changes.exclude(row, &[3]).unwrap();
        changes
    };
    assert!(error(&changes(9, 2)).contains("do not fit logits [2, 9]"));
    assert!(error(&changes(8, 0)).contains("do not fit logits [2, 9]"));
}
