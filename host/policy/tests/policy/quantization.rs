//! Tokens that are drawn with weights in 8 bits.

use crate::engine::assert_same;
use crate::{config, device, max_difference, model, tokens};
use gavel_policy::{
    Device, Engine, EngineConfig, Finished, LoraConfig, Model, ModelConfig, Quantization, Request, Sampling, Tensor,
};

fn int8() -> EngineConfig {
    EngineConfig { max_batch: 5, prefill_tokens: 24, quantization: Some(Quantization::Int8), ..EngineConfig::default() }
}

fn draw(engine: &mut Engine, model: &Model, requests: &[Request]) -> Vec<Finished> {
    requests.iter().for_each(|request| engine.submit(request.clone()).unwrap());
    let mut finished = Vec::new();
    while !engine.is_idle() {
        finished.extend(engine.step(model).unwrap().finished);
    }
    finished.sort_by_key(|response| response.id);
    finished
}

/// Prompts and responses of several lengths, greedy and not.
fn requests() -> Vec<Request> {
    let request = |id: u64| {
        let temperature = if id.is_multiple_of(3) { 0.0 } else { 1.0 };
        let sampling = Sampling { temperature, ..Sampling::new(4 + 3 * id as usize, vec![]) };
        Request::new(id, tokens(id / 2, 1 + 4 * id as usize), sampling, 50 + id)
    };
    (0..9).map(request).collect()
}

/// Rounds each row of a matrix to 127 steps on either side of 0.
fn rounded(weight: &Tensor) -> Tensor {
    let scale = weight.abs().amax([1i64].as_slice(), true) / 127.0;
    (weight / &scale).round() * scale
}

/// The same model whose matrices have the numbers that they have in 8 bits. Its head is its own, as embeddings are not
/// rounded.
fn with_rounded_weights(model: &Model) -> Model {
    let copy =
        Model::random(ModelConfig { tie_word_embeddings: false, ..model.config().clone() }, 0, device()).unwrap();
    let from = model.named_weights().unwrap();
    let embedding = from[0].1.shallow_clone();
    for (name, mut weight) in copy.named_weights().unwrap() {
        let own = from.iter().find(|(other, _)| *other == name).map(|(_, weight)| weight.shallow_clone());
        let is_exact = weight.dim() == 1 || name == "model.embed_tokens.weight";
        let own = own.unwrap_or(embedding.shallow_clone());
        weight.copy_(&if is_exact { own } else { rounded(&own) });
    }
    copy
}

#[test]
fn tokens_are_drawn_from_the_rounded_weights() {
    if device() != Device::Cpu {
        return;
    }
    for config in [config(), ModelConfig { tie_word_embeddings: false, ..config() }] {
        let model = model(config);
        let mut engine = Engine::new(&model, int8()).unwrap();
        let found = draw(&mut engine, &model, &requests());
        let expected = with_rounded_weights(&model);
        let mut plain = Engine::new(&expected, EngineConfig { quantization: None, ..int8() }).unwrap();
        let expected = draw(&mut plain, &expected, &requests());
        assert_eq!(found.len(), 9);
        found.iter().zip(&expected).for_each(|(found, expected)| assert_same(found, expected));
        // And not from the weights themselves.
        let mut plain = Engine::new(&model, EngineConfig { quantization: None, ..int8() }).unwrap();
        let whole = draw(&mut plain, &model, &requests());
        let differs = |(one, other): (&Finished, &Finished)| {
            one.response != other.response || (one.logprobs[0] - other.logprobs[0]).abs() > 1e-4
        };
        assert!(found.iter().zip(&whole).any(differs));
    }
}

#[test]
fn new_weights_are_rounded_again() {
    if device() != Device::Cpu {
        return;
    }
    let (before, after) = (model(config()), Model::random(config(), 9, device()).unwrap());
    let mut engine = Engine::new(&before, int8()).unwrap();
    let alone = |model: &Model| draw(&mut Engine::new(model, int8()).unwrap(), model, &requests());
    let same = |found: &[Finished], model: &Model| {
        found.iter().zip(&alone(model)).for_each(|(found, expected)| assert_same(found, expected));
    };
    same(&draw(&mut engine, &before, &requests()), &before);
    let trained = model(config());
    trained.set_parameters(&after.parameters()).unwrap();
    engine.set_version(1);
    same(&draw(&mut engine, &trained, &requests()), &after);
    // The weights of training are as they were.
    let difference = |(one, other): ((String, Tensor), (String, Tensor))| max_difference(&one.1, &other.1);
    let pairs = trained.named_weights().unwrap().into_iter().zip(after.named_weights().unwrap());
    assert!(pairs.map(difference).all(|difference| difference == 0.0));
}

#[test]
fn a_conversation_goes_on_in_8_bits() {
    if device() != Device::Cpu {
        return;
    }
    let model = model(config());
    let mut engine = Engine::new(&model, int8()).unwrap();
    let turn = |id, prompt: &[u32]| Request {
        conversation: Some(0),
        ..Request::new(id, prompt.to_vec(), Sampling::new(4, vec![]), id)
    };
    let mut prompt = tokens(0, 9);
    for id in 0..3 {
        let computed = engine.prefilled();
        let done = draw(&mut engine, &model, &[turn(id, &prompt)]);
        let mut other = Engine::new(&model, int8()).unwrap();
        assert_same(&done[0], &draw(&mut other, &model, &[turn(id, &prompt)])[0]);
        assert!(id == 0 || engine.prefilled() - computed < prompt.len() as u64 - 9);
        prompt = [&prompt[..], &done[0].response, &tokens(7 + id, 3)].concat();
    }
}

#[test]
fn adapters_stay_in_full_precision_beside_rounded_weights() {
    if device() != Device::Cpu {
        return;
    }
    let (base, lora) = (model(config()), LoraConfig { rank: 3, ..LoraConfig::default() });
    let adapted = |base: Model| {
        let model = base.adapt(&lora, std::path::Path::new("base"), 1).unwrap();
        let _guard = tch::no_grad_guard();
        for (index, (_, mut adapter)) in model.parameters().into_iter().enumerate() {
            let numbers: Vec<f32> = (0..adapter.numel() as u64)
                .map(|at| gavel_data::seed::uniform(index as u64, at) as f32 * 0.4 - 0.2)
                .collect();
            adapter.copy_(&Tensor::from_slice(&numbers).view_as(&adapter));
        }
        model
    };
    let (rounded, model) = (adapted(with_rounded_weights(&base)), adapted(base));
    let found = draw(&mut Engine::new(&model, int8()).unwrap(), &model, &requests());
    let mut plain = Engine::new(&rounded, EngineConfig { quantization: None, ..int8() }).unwrap();
    let expected = draw(&mut plain, &rounded, &requests());
    found.iter().zip(&expected).for_each(|(found, expected)| assert_same(found, expected));
    let whole = crate::engine::run(&model, 5, &requests());
    assert!(found.iter().zip(&whole).any(|(found, whole)| found.logprobs[0] != whole.logprobs[0]));
}

#[test]
fn weights_of_16_bits_are_rounded_too() {
    if device() != Device::Cpu {
        return;
    }
    let model = model(config()).to_kind(tch::Kind::BFloat16).unwrap();
    // The first token of a greedy response, whose distribution is that of 32 bits to the rounding of 16.
    let greedy = Request::new(0, tokens(1, 9), Sampling { temperature: 0.0, ..Sampling::new(1, vec![]) }, 0);
    let wide = model.to_kind(tch::Kind::Float).unwrap();
    let drawn = |model: &Model| draw(&mut Engine::new(model, int8()).unwrap(), model, std::slice::from_ref(&greedy));
    let (half, wide) = (drawn(&model), drawn(&wide));
    let difference = (half[0].logprobs[0] - wide[0].logprobs[0]).abs();
    assert!(half[0].response == wide[0].response && difference > 0.0 && difference < 0.05, "{difference}");
}

#[test]
fn a_device_without_such_products_is_refused() {
    if device() != Device::Cpu {
        return;
    }
    let config = EngineConfig { quantization: Some(Quantization::Fp8), ..int8() };
    let Err(error) = Engine::new(&model(self::config()), config) else { panic!("the CPU has no products of fp8") };
    let says = "quantization: weights in fp8 cannot be used on cpu: they are for GPUs\nhint: leave quantization out, or use \"int8\"";
    assert_eq!(error.to_string(), says);
}
