//! The numbers of a step: the tokens that it computes, where their keys and values go, and how the next tokens are
//! drawn. They reach the device in one transfer, which the host does not wait for.

use super::decoding::Decoding;
use super::prefill::{Copied, Prefill};
use super::row::Row;
use super::slots::Slots;
use crate::error::Result;
use crate::sampling::Sampling;
use gavel_torch::scalar::ScalarOperations;
use gavel_torch::transfer::send;
use std::collections::BTreeMap;
use std::iter::repeat_n;
use tch::{Device, Kind, Tensor};

/// A number that each decoding row has. The numbers of rows come after the numbers of tokens, in this order.
#[derive(Clone, Copy)]
enum Line {
    Start,
    Slot,
    Greedy,
    Uniform,
    Temperature,
    TopK,
    TopP,
    MinP,
    Penalty,
}

/// How many lines there are.
const LINES: i64 = Line::Penalty as i64 + 1;

/// The largest number to draw at, below 1 even after rounding in a product with the total, so that the search ends
/// inside.
pub(super) const BELOW_ONE: f64 = 1.0 - 1.0 / (1u64 << 50) as f64;

/// How many numbers of each sort there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    /// Rows that decode, padding included.
    rows: i64,
    /// All tokens: one of each of these rows, and the tokens of prompts.
    tokens: i64,
    /// Tokens that are copied.
    copies: i64,
    biases: i64,
    /// Tokens of responses from whose logits something is taken.
    repeated: i64,
}

/// The numbers on the host: whole numbers, and the bits of others.
pub(super) struct HostInputs {
    layout: Layout,
    numbers: Vec<i64>,
    longest: i64,
}

/// The numbers on the device.
pub(super) struct StepInputs {
    layout: Layout,
    numbers: Tensor,
    /// The keys of the row that has most, its next token included.
    pub(super) longest: i64,
}

impl HostInputs {
    /// The inputs of a step that decodes `rows` of `slots`, padded to `padded` rows, and computes `prefill`. The tokens
    /// of padding go to the place that belongs to no slot.
    pub(super) fn new(slots: &Slots, rows: &[Decoding], prefill: &Prefill, padded: usize, vocab: i64) -> Self {
        let cache = &slots.cache;
        let padding = padded.saturating_sub(rows.len());
        let decoding = || rows.iter().map(|of| (slots.slot(of.number), of.tokens(slots) - 1));
        let prompts = || prefill.parts.iter().flat_map(|part| part.places());
        let mut numbers = Vec::new();
        // The tokens, their positions, and their places in the cache.
        numbers.extend(rows.iter().map(|of| of.last_token(slots)).chain(repeat_n(0, padding)));
        numbers.extend(prefill.parts.iter().flat_map(|part| part.ids.iter().copied()));
        numbers.extend(decoding().map(|(_, position)| position as i64).chain(repeat_n(0, padding)));
        numbers.extend(prompts().map(|(_, position)| position as i64));
        numbers.extend(decoding().map(|(slot, position)| cache.place(slot, position)));
        numbers.extend(repeat_n(cache.spare_place(), padding));
        let is_padding = |row: usize, position: usize| slots.prefix(row) <= position;
        numbers.extend(prompts().map(|(row, position)| match is_padding(row, position) {
            true => cache.spare_place(),
            false => cache.place(slots.slot(row), position),
        }));
        let tokens = numbers.len() as i64 / 3;
        // One after another in the order of `Line`.
        numbers.extend(decoding().map(|(slot, _)| cache.place(slot, 0)).chain(repeat_n(cache.spare_place(), padding)));
        numbers.extend(decoding().map(|(slot, _)| slot as i64).chain(repeat_n(0, padding)));
        let mut line = |value: &dyn Fn(&Decoding, &Sampling) -> i64, padded: i64| {
            numbers.extend(rows.iter().map(|of| value(of, &of.row(slots).request.sampling)));
            numbers.extend(repeat_n(padded, padding));
        };
        line(&|_, of| i64::from(of.is_greedy()), 0);
        let mut bits = |value: &dyn Fn(&Decoding, &Sampling) -> f64, padded: f64| {
            line(&|row, of| value(row, of).to_bits() as i64, padded.to_bits() as i64);
        };
        bits(&|row, _| row.uniform(slots).min(BELOW_ONE), 0.0);
        bits(&|_, of| if of.is_greedy() { 1.0 } else { f64::from(of.temperature) }, 1.0);
        bits(&|_, of| of.top_k.map_or(vocab, |k| (k as i64).min(vocab)) as f64, vocab as f64);
        bits(&|_, of| if of.top_p < 1.0 { f64::from(of.top_p) } else { f64::INFINITY }, f64::INFINITY);
        bits(&|_, of| f64::from(of.min_p), 0.0);
        bits(&|_, of| f64::from(of.repetition_penalty), 1.0);
        let place = |row: usize, position: usize| cache.place(slots.slot(row), position);
        let places = |row: usize, of: &Copied| place(row, of.start)..place(row, of.end);
        numbers.extend(prefill.copies.iter().flat_map(|of| places(of.from, of)));
        numbers.extend(prefill.copies.iter().flat_map(|of| places(of.to, of)));
        let numbered = || (0..).zip(rows);
        let biases: Vec<_> = numbered().flat_map(|(number, of)| biases_of(number, of.row(slots))).collect();
        let repeated: Vec<_> = numbered().flat_map(|(number, of)| penalties_of(number, of.row(slots))).collect();
        for added in [&biases, &repeated] {
            numbers.extend(added.iter().map(|(row, ..)| *row));
            numbers.extend(added.iter().map(|(_, token, _)| *token));
            numbers.extend(added.iter().map(|(.., value)| value.to_bits() as i64));
        }
        let layout = Layout {
            rows: (rows.len() + padding) as i64,
            tokens,
            copies: prefill.copies.iter().map(|of| (of.end - of.start) as i64).sum(),
            biases: biases.len() as i64,
            repeated: repeated.len() as i64,
        };
        let longest = rows.iter().map(|of| of.tokens(slots)).max().unwrap_or_default() as i64;
        Self { layout, numbers, longest }
    }

    /// Sends them to the device.
    pub(super) fn send(&self, device: Device) -> Result<StepInputs> {
        let numbers = send(&Tensor::f_from_slice(&self.numbers)?, device)?;
        Ok(StepInputs { layout: self.layout, numbers, longest: self.longest })
    }
}

fn biases_of(number: i64, row: &Row) -> impl Iterator<Item = (i64, i64, f64)> {
    row.request.sampling.logit_bias.iter().map(move |&(token, bias)| (number, i64::from(token), f64::from(bias)))
}

/// What is added to the logits of tokens in the response, by OpenAI's formula.
fn penalties_of(number: i64, row: &Row) -> impl Iterator<Item = (i64, i64, f64)> {
    let of = &row.request.sampling;
    let mut counts = BTreeMap::new();
    for token in row.response.iter().filter(|_| of.has_added_penalties()) {
        *counts.entry(*token).or_insert(0.0) += 1.0;
    }
    let [presence, frequency] = [of.presence_penalty, of.frequency_penalty].map(f64::from);
    counts.into_iter().map(move |(token, count)| (number, i64::from(token), -(presence + count * frequency)))
}

impl StepInputs {
    /// Memory for inputs of as many tokens and rows, for rows of up to `longest` keys. It has no copies, and nothing that
    /// is added to logits: only a step from the host uses them.
    pub(super) fn place_of_its_own(&self, longest: i64) -> Result<Self> {
        let layout = Layout { copies: 0, biases: 0, repeated: 0, ..self.layout };
        Ok(Self { layout, numbers: self.part(0, self.after_lines())?.f_empty_like()?, longest })
    }

    /// Takes the numbers of `other`, which has as many tokens and rows.
    pub(super) fn copy_from(&self, other: &Self) -> Result<()> {
        Ok(self.numbers.shallow_clone().f_copy_(&other.part(0, other.after_lines())?)?)
    }

    /// Takes the tokens at these places among `tokens`, `[rows, 1]`, as its own.
    pub(super) fn take_tokens(&self, places: &Tensor, tokens: &Tensor) -> Result<()> {
        Ok(self.ids()?.f_copy_(&tokens.f_squeeze_dim(1)?.f_index_select(0, places)?)?)
    }

    /// The tokens: `[tokens]`, first the tokens of rows that decode.
    pub(super) fn ids(&self) -> Result<Tensor> {
        self.part(0, self.layout.tokens)
    }

    /// Their positions: `[tokens]`.
    pub(super) fn positions(&self) -> Result<Tensor> {
        self.part(self.layout.tokens, self.layout.tokens)
    }

    /// Where their keys and values go: `[tokens]`.
    pub(super) fn places(&self) -> Result<Tensor> {
        self.part(2 * self.layout.tokens, self.layout.tokens)
    }

    /// How many rows decode, padding included.
    pub(super) fn rows(&self) -> i64 {
        self.layout.rows
    }

    /// The keys of each row that decodes, its next token included: `[rows]`.
    pub(super) fn lengths(&self) -> Result<Tensor> {
        Ok(self.part(self.layout.tokens, self.layout.rows)?.try_add(1)?)
    }

    /// The place of each row's first key: `[rows]`.
    pub(super) fn starts(&self) -> Result<Tensor> {
        self.line(Line::Start)
    }

    /// The slot of each row: `[rows]`.
    pub(super) fn slots(&self) -> Result<Tensor> {
        self.line(Line::Slot)
    }

    /// Whether each row is greedy, 1 or 0: `[rows]`.
    pub(super) fn greedy(&self) -> Result<Tensor> {
        self.line(Line::Greedy)
    }

    /// The number to draw each row's token at: `[rows, 1]`, as the following.
    pub(super) fn uniforms(&self) -> Result<Tensor> {
        self.numbers_of(Line::Uniform)
    }

    /// 1 for greedy rows.
    pub(super) fn temperatures(&self) -> Result<Tensor> {
        self.numbers_of(Line::Temperature)
    }

    /// The vocabulary's size for rows without a limit.
    pub(super) fn top_k(&self) -> Result<Tensor> {
        self.numbers_of(Line::TopK)
    }

    /// Infinite for rows without a limit.
    pub(super) fn top_p(&self) -> Result<Tensor> {
        self.numbers_of(Line::TopP)
    }

    /// 0 for rows without a limit.
    pub(super) fn min_p(&self) -> Result<Tensor> {
        self.numbers_of(Line::MinP)
    }

    /// 1 for rows without a penalty.
    pub(super) fn penalties(&self) -> Result<Tensor> {
        self.numbers_of(Line::Penalty)
    }

    /// The places of prompts that are copied, from and to: `[copies]` each. `None` if there are none.
    pub(super) fn copies(&self) -> Result<Option<[Tensor; 2]>> {
        let (start, count) = (self.after_lines(), self.layout.copies);
        Ok(if count > 0 { Some([self.part(start, count)?, self.part(start + count, count)?]) } else { None })
    }

    /// What is added to single logits before penalties: row, token and value of each, `[biases]`. `None` if there is
    /// nothing.
    pub(super) fn biases(&self) -> Result<Option<[Tensor; 3]>> {
        self.added(self.after_lines() + 2 * self.layout.copies, self.layout.biases)
    }

    /// The same for what is added after other penalties, `[repeated]`.
    pub(super) fn repeated(&self) -> Result<Option<[Tensor; 3]>> {
        self.added(self.after_lines() + 2 * self.layout.copies + 3 * self.layout.biases, self.layout.repeated)
    }

    fn added(&self, start: i64, count: i64) -> Result<Option<[Tensor; 3]>> {
        let part = |line: i64| self.part(start + line * count, count);
        Ok(if count > 0 { Some([part(0)?, part(1)?, part(2)?.f_view_dtype(Kind::Double)?]) } else { None })
    }

    fn after_lines(&self) -> i64 {
        3 * self.layout.tokens + LINES * self.layout.rows
    }

    fn line(&self, line: Line) -> Result<Tensor> {
        self.part(3 * self.layout.tokens + line as i64 * self.layout.rows, self.layout.rows)
    }

    fn numbers_of(&self, line: Line) -> Result<Tensor> {
        Ok(self.line(line)?.f_view_dtype(Kind::Double)?.f_unsqueeze(1)?)
    }

    fn part(&self, start: i64, length: i64) -> Result<Tensor> {
        Ok(self.numbers.f_narrow(0, start, length)?)
    }
}
