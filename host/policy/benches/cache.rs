//! Memory that the key-value cache holds against memory that it uses, for rows of very different lengths, and what others
//! would hold of the same tokens: a cache whose slots all have room for the longest row, and a paged cache with blocks of
//! 16 tokens, as vLLM's default, without sharing and with full blocks of equal beginnings held once. Prints one line of
//! JSON for each case; arguments choose among them:
//!
//! - `conversations`: 8 groups of 8 conversations. A group shares the first prompt. Every conversation has 8 turns with
//!   50 to 500 tokens of others before each, and waits some steps for each. After the third turn, every fourth
//!   conversation has a branch: another conversation that goes on from there.
//! - `groups`: 16 prompts of 50 to 500 tokens with 8 responses each, 64 under way at a time.
//!
//! The lengths of responses have a heavy tail: a log-normal distribution with a median of 80 tokens and σ = 1.2, of at
//! most 4,000 tokens. Lengths depend on fixed seeds alone, and so does everything that is printed but the seconds.
//!
//! Memory is counted in the keys and values of a token. Used are the keys and values of rows under way, and of
//! conversations that wait for a turn. A copy that is kept of a conversation whose next turn is under way is not used.
//! Averages are over steps.
//!
//! `cargo bench --workspace --bench cache -- [CASE]…`
#![allow(clippy::print_stdout)]

use gavel_data::seed::uniform;
use gavel_policy::{
    Architecture, Device, Engine, EngineConfig, Head, Model, ModelConfig, PolicyError, Request, Sampling,
};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Instant;

/// Tokens of a block of a paged cache.
const BLOCK: usize = 16;
/// Responses to a prompt, or conversations that begin with it.
const GROUP: u64 = 8;
/// Turns of a conversation.
const TURNS: usize = 8;
/// The most tokens of a response.
const LONGEST: usize = 4000;
/// The keys and values of a token of the model: 2 · 16 numbers of 32 bits.
const TOKEN_BYTES: usize = 2 * 16 * 4;

fn main() -> Result<(), PolicyError> {
    // Only lengths matter, and operations are small.
    tch::set_num_threads(1);
    // Cargo adds `--bench`.
    let named: Vec<String> = std::env::args().skip(1).filter(|name| !name.starts_with("--")).collect();
    let wanted = |case: &str| named.is_empty() || named.iter().any(|name| name == case);
    if wanted("conversations") {
        let all = (0..8 * GROUP).map(|id| Conversation::new(id, TURNS)).collect();
        run("conversations", 128, true, all)?;
    }
    if wanted("groups") {
        let all = (0..16 * GROUP).map(|id| Conversation::new(id, 1)).collect();
        run("groups", 64, false, all)?;
    }
    Ok(())
}

/// A conversation, which may have a single turn.
struct Conversation {
    id: u64,
    /// All tokens up to its present prompt or response.
    tokens: Vec<u32>,
    /// Turns that are left, the present one included.
    turns: usize,
    /// Tokens that are in the cache.
    computed: usize,
    /// Tokens that were in it after the turn before.
    kept: usize,
    /// Their full blocks in a paged cache: each is known by the hash of all tokens up to its end.
    blocks: Vec<u64>,
}

impl Conversation {
    fn new(id: u64, turns: usize) -> Self {
        let mut new = Self { id, tokens: Vec::new(), turns, computed: 0, kept: 0, blocks: Vec::new() };
        // The first prompt is the group's.
        new.hear(id / GROUP);
        new
    }

    /// Another conversation that goes on from here.
    fn branch(&self, id: u64) -> Self {
        Self { id, tokens: self.tokens.clone(), turns: self.turns, computed: 0, kept: 0, blocks: Vec::new() }
    }

    /// Adds 50 to 500 tokens of others.
    fn hear(&mut self, seed: u64) {
        let seed = (seed << 8) | self.turns as u64;
        let length = 50 + (451.0 * uniform(1_000_000 + seed, 0)) as u64;
        self.tokens.extend((1..=length).map(|i| 3 + (256.0 * uniform(1_000_000 + seed, i)) as u32));
    }

    /// The request of its present turn.
    fn request(&self, is_kept: bool) -> Request {
        let sampling = Sampling::new(response_length(self.seed()), Vec::new());
        let request = Request::new(self.id, self.tokens.clone(), sampling, self.seed());
        Request { conversation: is_kept.then_some(self.id), ..request }
    }

    /// Steps until its next turn.
    fn pause(&self) -> u64 {
        20 + (180.0 * uniform(3_000_000 + self.seed(), 0)) as u64
    }

    fn seed(&self) -> u64 {
        (self.id << 8) | self.turns as u64
    }
}

/// Log-normal, with the sum of twelve uniform numbers for a normal one.
fn response_length(seed: u64) -> usize {
    let normal = (0..12).map(|i| uniform(2_000_000 + seed, i)).sum::<f64>() - 6.0;
    ((80.0 * (1.2 * normal).exp()) as usize).clamp(1, LONGEST)
}

/// What a paged cache would hold.
#[derive(Default)]
struct Paged {
    /// How many conversations have each full block.
    sharing: HashMap<u64, usize>,
    /// Blocks without sharing, full ones and others.
    unshared: usize,
    /// Blocks that are not full.
    partial: usize,
}

impl Paged {
    /// Takes all tokens of a conversation, of which it may have some.
    fn take(&mut self, of: &mut Conversation) {
        let full = of.tokens.len() / BLOCK;
        for block in of.blocks.len()..full {
            let mut hasher = DefaultHasher::new();
            (of.blocks.last(), &of.tokens[block * BLOCK..(block + 1) * BLOCK]).hash(&mut hasher);
            of.blocks.push(hasher.finish());
            *self.sharing.entry(hasher.finish()).or_default() += 1;
        }
        self.count(of.computed, of.tokens.len());
        of.computed = of.tokens.len();
    }

    /// Frees what a conversation has.
    fn free(&mut self, of: &mut Conversation) {
        for block in of.blocks.drain(..) {
            if let Some(count) = self.sharing.get_mut(&block) {
                *count -= 1;
            }
        }
        self.sharing.retain(|_, count| *count > 0);
        self.count(of.computed, 0);
        of.computed = 0;
    }

    fn count(&mut self, before: usize, after: usize) {
        self.unshared = self.unshared + after.div_ceil(BLOCK) - before.div_ceil(BLOCK);
        let is_partial = |tokens: usize| usize::from(!tokens.is_multiple_of(BLOCK));
        self.partial = self.partial + is_partial(after) - is_partial(before);
    }

    /// Its tokens with sharing.
    fn shared(&self) -> usize {
        (self.sharing.len() + self.partial) * BLOCK
    }
}

/// What a cache of equal slots would hold, as this one was: each slot has room for the longest row. Slots double, and
/// room grows by half, in chunks of 64 tokens. Conversations are kept beside the slots, also while a turn is under way.
#[derive(Default)]
struct EqualSlots {
    slots: usize,
    room: usize,
}

impl EqualSlots {
    /// Its tokens with these conversations, of which some are `active`.
    fn held(
        &mut self,
        active: &HashMap<u64, Conversation>,
        waiting: &[(u64, Conversation)],
        max_batch: usize,
    ) -> usize {
        let rows = active.values().filter(|of| of.computed > of.kept);
        let (count, longest) = rows.fold((0, 0), |(count, longest), of| (count + 1, of.tokens.len().max(longest)));
        if count > self.slots {
            self.slots = count.max(2 * self.slots).min(max_batch);
        }
        if longest > self.room {
            self.room = longest.next_multiple_of(64).max((self.room * 3 / 2).next_multiple_of(64));
        }
        let kept: usize = active.values().chain(waiting.iter().map(|(_, of)| of)).map(|of| of.kept).sum();
        self.slots * self.room + kept.min(self.slots * self.room)
    }
}

/// The mean and the peak of a number of bytes.
#[derive(Default)]
struct Series {
    sum: f64,
    peak: f64,
}

impl Series {
    fn add(&mut self, bytes: usize) {
        self.sum += bytes as f64;
        self.peak = self.peak.max(bytes as f64);
    }

    /// In tokens' keys and values.
    fn show(&self, steps: u64) -> String {
        let tokens = |bytes: f64| (bytes / TOKEN_BYTES as f64).round();
        format!(r#"{{"mean": {}, "peak": {}}}"#, tokens(self.sum / steps as f64), tokens(self.peak))
    }
}

/// Runs all of them, and prints what was held and used.
fn run(case: &str, max_batch: usize, is_kept: bool, all: Vec<Conversation>) -> Result<(), PolicyError> {
    let model = Model::random(tiny(), 0, Device::Cpu)?;
    let mut engine = Engine::new(&model, EngineConfig { max_batch, ..EngineConfig::default() })?;
    let started = Instant::now();
    let mut next_id = all.len() as u64;
    // Those that wait for the step of their next turn.
    let mut later: Vec<(u64, Conversation)> = all.into_iter().map(|of| (0, of)).collect();
    let mut active: HashMap<u64, Conversation> = HashMap::new();
    let (mut paged, mut now, mut steps, mut drawn) = (Paged::default(), 0, 0, 0);
    let [mut held, mut used, mut unshared, mut shared, mut equal] = <[Series; 5]>::default();
    let mut slots = EqualSlots::default();
    while !(later.is_empty() && active.is_empty()) {
        for (_, of) in later.extract_if(.., |(step, _)| *step <= now) {
            engine.submit(of.request(is_kept))?;
            active.insert(of.id, of);
        }
        now += 1;
        if active.is_empty() {
            continue;
        }
        let step = engine.step(&model)?;
        drawn += step.drawn.len();
        for token in &step.drawn {
            let Some(of) = active.get_mut(&token.id) else { continue };
            // The token itself is the next input: its keys and values come with the next step.
            paged.take(of);
            of.tokens.push(token.token);
        }
        let cache = engine.cache_use();
        held.add(cache.held);
        used.add(cache.used);
        unshared.add(paged.unshared * BLOCK * TOKEN_BYTES);
        shared.add(paged.shared() * TOKEN_BYTES);
        equal.add(slots.held(&active, &later, max_batch) * TOKEN_BYTES);
        steps += 1;
        for finished in step.finished {
            let Some(mut of) = active.remove(&finished.id) else { continue };
            of.turns -= 1;
            if of.turns == 0 {
                engine.forget(of.id);
                paged.free(&mut of);
                continue;
            }
            of.kept = of.computed;
            if of.turns == TURNS - 3 && of.id % 4 == 0 {
                let mut branch = of.branch(next_id);
                next_id += 1;
                branch.hear(branch.id);
                later.push((now + branch.pause(), branch));
            }
            of.hear(of.id);
            later.push((now + of.pause(), of));
        }
    }
    let (prefilled, seconds) = (engine.prefilled(), started.elapsed().as_secs_f64());
    let lost = |used: &Series, held: &Series| 1.0 - used.sum / held.sum;
    let (loss, of_equal) = (lost(&used, &held), lost(&used, &equal));
    let (of_pages, of_sharing) = (lost(&used, &unshared), lost(&used, &shared));
    let [held, used, unshared, shared, equal] = [held, used, unshared, shared, equal].map(|of| of.show(steps));
    println!(
        r#"{{"case": "{case}", "steps": {steps}, "drawn": {drawn}, "prefilled": {prefilled}, "held": {held}, "used": {used}, "equal_slots": {equal}, "paged": {unshared}, "paged_and_shared": {shared}, "lost": {loss:.3}, "lost_in_equal_slots": {of_equal:.3}, "lost_in_pages": {of_pages:.3}, "lost_in_shared_pages": {of_sharing:.3}, "seconds": {seconds:.1}}}"#
    );
    Ok(())
}

/// A model whose steps cost little: only lengths matter.
fn tiny() -> ModelConfig {
    ModelConfig {
        architecture: Architecture::Qwen2,
        vocab_size: 259,
        hidden_size: 16,
        intermediate_size: 32,
        num_hidden_layers: 1,
        num_attention_heads: 1,
        num_key_value_heads: 1,
        head_dim: 16,
        windows: Vec::new(),
        max_position_embeddings: 65_536,
        rms_norm_eps: 1e-6,
        rope_theta: 10_000.0,
        rope_scaling: None,
        tie_word_embeddings: true,
        head: Head::LanguageModel,
        initializer_range: 0.02,
        bos_token_id: None,
        eos_token_id: vec![2],
        pad_token_id: Some(0),
    }
}
