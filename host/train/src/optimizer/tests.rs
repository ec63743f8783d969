use super::*;
use std::collections::BTreeMap;
use tch::Kind;

/// The running mean of a parameter's gradient; with `betas[0] = 0` that is the
/// gradient of the last step. Nothing if another rank has it.
pub fn exp_avg(optimizer: &Optimizer, name: &str) -> Vec<f64> {
    let at = optimizer.names.iter().position(|known| known == name).unwrap();
    optimizer.states[at].as_ref().map_or_else(Vec::new, |state| values(&state[0]))
}

impl Optimizer {
    /// The state of the parameter at this place; nothing if another rank has it.
    pub fn state_of(&self, at: usize) -> &[Tensor] {
        self.states[at].as_deref().unwrap_or_default()
    }

    /// The rows of the matrices of each parameter that has Muon.
    pub fn muon(&self) -> BTreeMap<String, Vec<i64>> {
        let rules = self.names.iter().zip(&self.rules).filter_map(|(name, rule)| match rule {
            Rule::Muon { rows } => Some((name.clone(), rows.clone())),
            _ => None,
        });
        rules.collect()
    }
}

/// The names of the parameters that have a gradient, or whose master has one.
pub fn with_gradient(optimizer: &Optimizer) -> Vec<String> {
    let all = optimizer.names.iter().zip(&optimizer.parameters);
    all.filter(|(_, parameter)| parameter.grad().defined()).map(|(name, _)| name.clone()).collect()
}

/// The bytes of the weights, of the moments and masters, and of the gradients that an optimiser has.
pub fn held(optimizer: &Optimizer) -> [usize; 3] {
    let masters = optimizer.leaves.iter().zip(&optimizer.parameters);
    let masters = masters.filter(|(leaf, parameter)| leaf.kind() != parameter.kind()).map(|(_, master)| master);
    let gradients = optimizer.parameters.iter().map(Tensor::grad).filter(Tensor::defined);
    [
        optimizer.leaves.iter().map(spanned).sum(),
        optimizer.states.iter().flatten().flatten().chain(masters).map(spanned).sum(),
        gradients.map(|gradient| gradient.numel() * gradient.kind().elt_size_in_bytes()).sum(),
    ]
}

/// The bytes of a tensor as its strides have it; none for one that was freed, of which a number is left.
pub fn spanned(tensor: &Tensor) -> usize {
    let steps = tensor.size().into_iter().zip(tensor.stride()).map(|(size, stride)| (size - 1) * stride);
    let numbers = (1 + steps.sum::<i64>()) as usize;
    if numbers == 1 && tensor.numel() > 1 { 0 } else { numbers * tensor.kind().elt_size_in_bytes() }
}

/// The bytes of a tensor's storage, which libtorch names when it refuses to read beyond it, and takes long for.
pub fn stored(tensor: &Tensor) -> usize {
    let refused = tensor.detach().f_as_strided([1i64 << 40], [1], 0).unwrap_err().to_string();
    let (_, size) = refused.split_once("out of bounds for storage of size ").unwrap();
    size.split(|next: char| !next.is_ascii_digit()).next().unwrap().parse().unwrap()
}

pub fn values(tensor: &Tensor) -> Vec<f64> {
    Vec::try_from(tensor.detach().to_kind(Kind::Double).flatten(0, -1)).unwrap()
}

fn parameters() -> Vec<(String, Tensor)> {
    let vector = Tensor::from_slice(&[0.5f64, -0.25]).set_requires_grad(true);
    let matrix = Tensor::from_slice(&[1.0f64, -2.0, 0.5, 0.1]).view([2, 2]).set_requires_grad(true);
    vec![("norm.weight".into(), vector), ("layer.weight".into(), matrix)]
}

/// Gradients that change from step to step: of `Σ c · x²` with `c = step + 1`.
fn backward(parameters: &[(String, Tensor)], step: usize) {
    let loss: Tensor = parameters.iter().map(|(_, x)| x.square().sum(Kind::Double)).sum();
    (loss * (step as f64 + 1.0)).backward();
}

/// AdamW as the paper writes it (algorithm 2), with clipping.
struct Plain {
    x: Vec<f64>,
    m: Vec<f64>,
    v: Vec<f64>,
    decay: f64,
}

impl Plain {
    fn new(tensor: &Tensor, decay: f64) -> Self {
        let x = values(tensor);
        Self { m: vec![0.0; x.len()], v: vec![0.0; x.len()], x, decay }
    }

    fn step(&mut self, gradient: &[f64], t: i32, lr: f64, config: &OptimizerConfig) {
        let [beta1, beta2] = config.betas;
        for (i, g) in gradient.iter().enumerate() {
            self.x[i] -= lr * self.decay * self.x[i];
            self.m[i] = beta1 * self.m[i] + (1.0 - beta1) * g;
            self.v[i] = beta2 * self.v[i] + (1.0 - beta2) * g * g;
            let (m, v) = (self.m[i] / (1.0 - beta1.powi(t)), self.v[i] / (1.0 - beta2.powi(t)));
            self.x[i] -= lr * m / (v.sqrt() + config.eps);
        }
    }
}

#[test]
fn five_steps_are_those_of_the_paper() {
    let config = OptimizerConfig { weight_decay: 0.3, max_grad_norm: 9.0, ..Default::default() };
    let all = parameters();
    let shared = all.iter().map(|(name, x)| (name.clone(), x.shallow_clone())).collect();
    let mut optimizer = Optimizer::new(shared, config).unwrap();
    let mut plain = [Plain::new(&all[0].1, 0.0), Plain::new(&all[1].1, 0.3)];
    let mut clipped = 0;
    for step in 0..5 {
        let lr = 0.1 / (step + 1) as f64;
        let gradients: Vec<Vec<f64>> =
            plain.iter().map(|p| p.x.iter().map(|x| 2.0 * x * (step as f64 + 1.0)).collect()).collect();
        let norm = gradients.iter().flatten().map(|g| g * g).sum::<f64>().sqrt();
        let scale = (9.0 / (norm + 1e-6)).min(1.0);
        clipped += usize::from(scale < 1.0);
        for (plain, gradient) in plain.iter_mut().zip(&gradients) {
            let gradient: Vec<f64> = gradient.iter().map(|g| g * scale).collect();
            plain.step(&gradient, step + 1, lr, &config);
        }

        backward(&all, step as usize);
        let found = optimizer.step(lr).unwrap();
        optimizer.zero_grad().unwrap();
        assert!((found - norm).abs() < 1e-9, "step {step}: norm {found} is not {norm}");
        for ((name, x), plain) in all.iter().zip(&plain) {
            for (a, b) in values(x).iter().zip(&plain.x) {
                assert!((a - b).abs() < 1e-12, "step {step}, {name}: {a} is not {b}");
            }
        }
    }
    assert!((1..5).contains(&clipped), "clipping must happen in some steps, not in {clipped} of 5");
}

#[test]
fn restored_state_continues_bit_for_bit() {
    let plain = [parameters(), halves()].map(|all| (all, OptimizerKind::Adamw));
    let kinds = [OptimizerKind::Adamw8Bit, OptimizerKind::Muon];
    let others = kinds.map(|kind| [(of_a_layer(), kind), (in_16_bits(of_a_layer()), kind)]);
    for (all, kind) in plain.into_iter().chain(others.into_iter().flatten()) {
        let config = OptimizerConfig { kind, ..OptimizerConfig::default() };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("optimizer.safetensors");
        let mut optimizer = Optimizer::new(share(&all), config).unwrap();
        let run = |optimizer: &mut Optimizer, all: &[(String, Tensor)], steps: std::ops::Range<usize>| {
            for step in steps {
                backward(all, step);
                optimizer.step(1e-3).unwrap();
                optimizer.zero_grad().unwrap();
            }
        };
        run(&mut optimizer, &all, 0..3);
        optimizer.save(&path).unwrap();
        let copy: Vec<(String, Tensor)> =
            all.iter().map(|(name, x)| (name.clone(), x.detach().copy().set_requires_grad(true))).collect();
        run(&mut optimizer, &all, 3..6);

        let mut resumed = Optimizer::new(share(&copy), config).unwrap();
        resumed.load(&path).unwrap();
        assert_eq!(resumed.steps(), 3);
        run(&mut resumed, &copy, 3..6);
        for ((name, a), (_, b)) in all.iter().zip(&copy) {
            assert_eq!(values(a), values(b), "{name}");
        }
        for (a, b) in optimizer.parameters.iter().zip(&resumed.parameters) {
            assert_eq!(values(a), values(b));
        }
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "no partial file is left");
    }
}

/// The parameters of [`parameters`] in 16 bits.
pub fn halves() -> Vec<(String, Tensor)> {
    in_16_bits(parameters())
}

fn in_16_bits(all: Vec<(String, Tensor)>) -> Vec<(String, Tensor)> {
    let half = |x: &Tensor| x.detach().to_kind(Kind::BFloat16).set_requires_grad(true);
    all.into_iter().map(|(name, x)| (name, half(&x))).collect()
}

/// Parameters in and beside a layer, of which one is large enough for running means of 8 bits.
fn of_a_layer() -> Vec<(String, Tensor)> {
    let number = |at: i64| ((at * 37) % 101 - 50) as f32 / 50.0;
    let tensor = |size: &[i64]| {
        let numbers: Vec<f32> = (0..size.iter().product()).map(number).collect();
        Tensor::from_slice(&numbers).view(size).set_requires_grad(true)
    };
    vec![
        ("model.embed_tokens.weight".into(), tensor(&[5, 3])),
        ("model.layers.0.mlp.weight".into(), tensor(&[64, 64])),
        ("model.layers.0.norm.weight".into(), tensor(&[3])),
    ]
}

#[test]
fn each_kind_has_its_state_of_each_parameter() {
    let state = |kind| {
        let optimizer = Optimizer::new(of_a_layer(), OptimizerConfig { kind, ..OptimizerConfig::default() }).unwrap();
        let bytes = |at| optimizer.state_of(at).iter().map(|x| x.numel() * x.kind().elt_size_in_bytes()).sum::<usize>();
        // The embedding, the matrix of the layer and its norm.
        [0, 1, 2].map(bytes)
    };
    assert_eq!(state(OptimizerKind::Adamw), [15 * 8, 4096 * 8, 3 * 8]);
    // Two codes for each number, and two scales for 256.
    assert_eq!(state(OptimizerKind::Adamw8Bit), [15 * 8, 4096 * 2 + 16 * 8, 3 * 8]);
    assert_eq!(state(OptimizerKind::Muon), [15 * 8, 4096 * 4, 3 * 8]);
}

#[test]
fn beside_layers_muon_is_adamw() {
    let [muon, adamw] = [OptimizerKind::Muon, OptimizerKind::Adamw].map(|kind| {
        let all = of_a_layer();
        let config = OptimizerConfig { kind, max_grad_norm: f64::INFINITY, ..OptimizerConfig::default() };
        let mut optimizer = Optimizer::new(share(&all), config).unwrap();
        backward(&all, 0);
        optimizer.step(1e-2).unwrap();
        all.iter().map(|(_, x)| values(x)).collect::<Vec<_>>()
    });
    assert!(muon[0] == adamw[0] && muon[1] != adamw[1] && muon[2] == adamw[2]);
}

#[test]
fn matrices_that_lie_one_below_the_other_have_muon_each() {
    let step = |all: Vec<(String, Tensor)>, rows: &[i64]| {
        let config = OptimizerConfig { kind: OptimizerKind::Muon, ..OptimizerConfig::default() };
        let config = OptimizerConfig { max_grad_norm: f64::INFINITY, ..config };
        let rows = |_: &str, _: &Tensor| Ok(rows.to_vec());
        let mut optimizer = Optimizer::of_ranks(share(&all), rows, config, Peers::alone(), Parameters::Whole).unwrap();
        backward(&all, 0);
        optimizer.step(1e-2).unwrap();
        all.iter().flat_map(|(_, x)| values(x)).collect::<Vec<_>>()
    };
    let (_, whole) = of_a_layer().swap_remove(1);
    let part = |start, rows| {
        let part = whole.detach().narrow(0, start, rows).copy().set_requires_grad(true);
        vec![("model.layers.0.part.weight".to_owned(), part)]
    };
    let parts = [step(part(0, 20), &[20]), step(part(20, 44), &[44])].concat();
    let named = |x: &Tensor| vec![("model.layers.0.whole.weight".to_owned(), x.copy().set_requires_grad(true))];
    assert_eq!(step(named(&whole.detach()), &[20, 44]), parts);
    assert_ne!(step(named(&whole.detach()), &[64]), parts);
}

#[test]
fn the_state_of_another_kind_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    let of = |kind| Optimizer::new(of_a_layer(), OptimizerConfig { kind, ..OptimizerConfig::default() }).unwrap();
    of(OptimizerKind::Muon).save(&path).unwrap();
    let error = of(OptimizerKind::Adamw).load(&path).unwrap_err().to_string();
    let says = "is of the kind `muon`, not `adamw`\nhint: continue with `kind = \"muon\"`, or start a new run";
    assert!(error.contains(says), "{error}");
    let mut text = std::fs::read(&path).unwrap();
    let place = text.windows(4).position(|bytes| bytes == b"muon").unwrap();
    text[place..place + 4].copy_from_slice(b"moon");
    std::fs::write(&path, text).unwrap();
    let error = of(OptimizerKind::Adamw).load(&path).unwrap_err().to_string();
    assert!(error.ends_with("its kind of optimiser is not known"), "{error}");
}

pub fn share(all: &[(String, Tensor)]) -> Vec<(String, Tensor)> {
    all.iter().map(|(name, x)| (name.clone(), x.shallow_clone())).collect()
}

#[test]
fn a_state_of_another_model_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("state");
    Optimizer::new(parameters(), OptimizerConfig::default()).unwrap().save(&path).unwrap();
    let error = |change: fn(&mut Vec<(String, Tensor)>)| {
        let mut other = parameters();
        change(&mut other);
        let mut optimizer = Optimizer::new(other, OptimizerConfig::default()).unwrap();
        let error = optimizer.load(&path).unwrap_err().to_string();
        assert_eq!(optimizer.steps(), 0);
        error.replace(path.to_str().unwrap(), "PATH")
    };
    assert_eq!(
        error(|all| all[0].0 = "other.weight".into()),
        "optimiser state PATH does not have the tensor `exp_avg.other.weight`: it belongs to another model"
    );
    assert_eq!(
        error(|all| all.truncate(1)),
        "optimiser state PATH has the tensor `exp_avg.layer.weight`, which this model does not: it belongs to another model"
    );
    assert_eq!(
        error(|all| all[1].1 = Tensor::zeros([4, 1], (Kind::Float, tch::Device::Cpu))),
        "optimiser state PATH: tensor `exp_avg.layer.weight` is F64[2, 2], expected F32[4, 1]: it belongs to another model"
    );
    std::fs::write(&path, "{}").unwrap();
    assert!(error(|_| ()).starts_with("optimiser state PATH: not a safetensors file"));
    std::fs::remove_file(&path).unwrap();
    assert!(error(|_| ()).starts_with("cannot read optimiser state PATH"));
}

#[test]
fn without_a_sound_gradient_nothing_changes() {
    let all = parameters();
    let shared = all.iter().map(|(name, x)| (name.clone(), x.shallow_clone())).collect();
    let mut optimizer = Optimizer::new(shared, OptimizerConfig::default()).unwrap();
    let before: Vec<_> = all.iter().map(|(_, x)| values(x)).collect();
    all[1].1.sum(Kind::Double).backward();
    let error = optimizer.step(0.1).unwrap_err().to_string();
    assert!(error.starts_with("parameter `norm.weight` got no gradient"), "{error}");
    (all[0].1.sum(Kind::Double) * f64::INFINITY).backward();
    let error = optimizer.step(0.1).unwrap_err().to_string();
    assert!(error.starts_with("optimiser step 0: the gradient norm is inf; nothing was changed"), "{error}");
    assert_eq!(all.iter().map(|(_, x)| values(x)).collect::<Vec<_>>(), before);
    assert_eq!(optimizer.steps(), 0);
}

#[test]
fn what_is_out_of_range_is_named() {
    let error = |text: &str| toml::from_str::<OptimizerConfig>(text).unwrap().validate().unwrap_err().to_string();
    assert_eq!(error("betas = [0.9, 1.0]"), "betas must be two numbers of at least 0 and below 1, not 1");
    assert_eq!(error("eps = 0.0"), "eps must be a number above 0, not 0");
    assert_eq!(error("weight_decay = -1.0"), "weight_decay must be a number of at least 0, not -1");
    assert_eq!(error("max_grad_norm = nan"), "max_grad_norm must be a number above 0, or inf, not NaN");
    assert!(toml::from_str::<OptimizerConfig>("max_grad_norm = inf").unwrap().validate().is_ok());
    assert!(toml::from_str::<OptimizerConfig>("lr = 1.0").is_err());
    assert_eq!(error("kind = 'adamw_8bit'\nmuon = {}"), "kind must be `muon` beside a table `muon`, not `adamw_8bit`");
    let muon = |text: &str| error(&format!("kind = 'muon'\nmuon.{text}"));
    assert_eq!(muon("momentum = 1.0"), "muon.momentum must be a number of at least 0 and below 1, not 1");
    assert_eq!(muon("ns_steps = 100"), "muon.ns_steps must be from 1 to 99, not 100");
}
