//! Attention of rows of different lengths, to a cache or to each other (`shim/attention.cpp`).

use crate::{Result, TchError, made};
use std::ffi::c_char;
use tch::{Device, Kind, Tensor};
use torch_sys::C_tensor;

unsafe extern "C" {
    fn gavel_attend_last(
        query: *const C_tensor,
        keys: *const C_tensor,
        values: *const C_tensor,
        starts: *const C_tensor,
        lengths: *const C_tensor,
        window: i64,
        scale: f64,
        out: *mut *mut C_tensor,
    ) -> *mut c_char;
    fn gavel_flash_attention(
        query: *const C_tensor,
        keys: *const C_tensor,
        values: *const C_tensor,
        first_queries: *const C_tensor,
        starts: *const C_tensor,
        lengths: *const C_tensor,
        most_queries: i64,
        most_keys: i64,
        window: i64,
        scale: f64,
        out: *mut *mut C_tensor,
    ) -> *mut c_char;
    fn gavel_flash_attention_shared(
        query: *const C_tensor,
        keys: *const C_tensor,
        values: *const C_tensor,
        starts: *const C_tensor,
        first_queries: *const C_tensor,
        first_keys: *const C_tensor,
        longest: i64,
        most_queries: i64,
        most_keys: i64,
        followers: i64,
        prompts: i64,
        scale: f64,
        out: *mut *mut C_tensor,
    ) -> *mut c_char;
}

/// Keys and values in places, each `[places, kv_heads, width]` and contiguous.
#[derive(Debug, Clone, Copy)]
pub struct Stored<'a> {
    /// The keys.
    pub keys: &'a Tensor,
    /// The values.
    pub values: &'a Tensor,
}

/// How scores are computed.
#[derive(Debug, Clone, Copy)]
pub struct Scoring {
    /// The factor of products.
    pub scale: f64,
    /// A query sees at most this many keys, the nearest; all if there is none.
    pub window: Option<i64>,
}

/// On the CPU: lets the query of each row's last token, `[rows, heads, width]`, attend to the row's keys in `stored`: as
/// many as `lengths` from place `starts` on, both `[rows]` of 64-bit integers. Gives `[rows, heads, width]`. Sums have at
/// least 32 bits. There are no gradients.
///
/// # Errors
/// The shapes do not fit, a row lies outside `stored`, or the tensors are not on the CPU.
pub fn attend_last(
    query: &Tensor,
    stored: Stored,
    [starts, lengths]: [&Tensor; 2],
    scoring: Scoring,
) -> Result<Tensor> {
    let (rows, heads, width) = query.size3()?;
    let (places, kv_heads, _) = stored.keys.size3()?;
    let stores = [stored.keys, stored.values];
    let fit = stores.iter().all(|x| x.size() == [places, kv_heads, width] && x.kind() == query.kind())
        && stores.iter().all(|x| x.is_contiguous() && x.device() == Device::Cpu)
        && [starts, lengths].iter().all(|x| x.size() == [rows] && x.kind() == Kind::Int64 && x.device() == Device::Cpu)
        && query.device() == Device::Cpu
        && [Kind::Float, Kind::Double, Kind::BFloat16, Kind::Half].contains(&query.kind())
        && kv_heads > 0
        && heads % kv_heads == 0;
    if !fit {
        return Err(TchError::Torch(format!("attention of {query:?} to {:?}: they do not fit", stored.keys)));
    }
    let (begins, counts) = (Vec::<i64>::try_from(starts)?, Vec::<i64>::try_from(lengths)?);
    let inside = |(&start, &length): (&i64, &i64)| start >= 0 && length > 0 && start + length <= places;
    if !begins.iter().zip(&counts).all(inside) {
        return Err(TchError::Torch(format!("rows from {begins:?} of {counts:?} keys are not within {places} places")));
    }
    let (query, starts, lengths) = (query.f_contiguous()?, starts.f_contiguous()?, lengths.f_contiguous()?);
    // SAFETY: shapes, kinds and devices are those that the shim asks for, all are contiguous, all rows lie within the
    // store, and the tensors outlive the call.
    let [out] = made(|out| unsafe {
        gavel_attend_last(
            query.as_ptr(),
            stored.keys.as_ptr(),
            stored.values.as_ptr(),
            starts.as_ptr(),
            lengths.as_ptr(),
            scoring.window.unwrap_or(0),
            scoring.scale,
            out,
        )
    })?;
    Ok(out)
}

/// Where the rows of flash attention are, in 32-bit integers on the device.
#[derive(Debug)]
pub struct FlashRows {
    /// `[rows + 1]`: the queries before each row, and all.
    pub first_queries: Tensor,
    /// `[rows + 1]`: the place of each row's first key, and a last number.
    pub starts: Tensor,
    /// `[rows]`: the keys of each row. Without it, a row's keys end where the next row's keys begin, and the last row's
    /// keys end at the last number.
    pub lengths: Option<Tensor>,
    /// The queries of the row that has most, or more.
    pub most_queries: i64,
    /// The keys of the row that has most, or more.
    pub most_keys: i64,
}

/// On a GPU in 16 bits: lets `query`, `[queries, heads, width]`, attend to keys and values in `stored`. A row's last
/// query sees all its keys, the one before it all but the last, and so on. Gives `[queries, heads, width]`, with
/// gradients if there are no lengths (Dao, "FlashAttention-2", arXiv:2307.08691).
///
/// # Errors
/// libtorch has no such operation for these tensors.
pub fn flash(query: &Tensor, stored: Stored, rows: &FlashRows, scoring: Scoring) -> Result<Tensor> {
    // SAFETY: libtorch checks shapes, kinds and devices; the tensors outlive the call.
    let [out] = made(|out| unsafe {
        gavel_flash_attention(
            query.as_ptr(),
            stored.keys.as_ptr(),
            stored.values.as_ptr(),
            rows.first_queries.as_ptr(),
            rows.starts.as_ptr(),
            rows.lengths.as_ref().map_or(std::ptr::null(), Tensor::as_ptr),
            rows.most_queries,
            rows.most_keys,
            scoring.window.unwrap_or(0),
            scoring.scale,
            out,
        )
    })?;
    Ok(out)
}

/// Where the rows are, if some follow a prompt. First come the prompts that rows follow, then rows alone, and last the
/// rows that follow: all after the first prompt, then all after the second, and so on.
#[derive(Debug)]
pub struct SharedRows {
    /// `[rows + 1]`, in 32-bit integers on the device: the tokens before each row, and all.
    pub starts: Tensor,
    /// The tokens of the longest row, or more.
    pub longest: i64,
    /// For each prompt that rows follow: the queries of these rows, and the keys of the prompt. Queries count from the
    /// first row that follows a prompt. Without lengths.
    pub prompts: FlashRows,
    /// The tokens of all prompts that rows follow.
    pub prompt_tokens: i64,
    /// The tokens of all rows that follow a prompt.
    pub follower_tokens: i64,
}

/// On a GPU in 16 bits: lets each token of `query`, `[tokens, heads, width]`, attend to the keys and values in `stored`,
/// `[tokens, kv_heads, width]`, of its row up to its own, and of the prompt that the row follows. Gives
/// `[tokens, heads, width]`, with gradients.
///
/// These are two attentions, of the rows and to the prompts, which are merged by the log-sum-exps of their scores
/// (Juravsky et al., "Hydragen", arXiv:2402.05099): the keys of a prompt are read once for all that follow it. With the
/// merged outputs and log-sum-exps, the backward pass of each (Dao, "FlashAttention-2", arXiv:2307.08691) gives its share
/// of the gradients. On the CPU both are computed by definition, row after row.
///
/// # Errors
/// libtorch has no such operation for these tensors, or they have fewer tokens than `rows`.
pub fn flash_shared(query: &Tensor, stored: Stored, rows: &SharedRows, scale: f64) -> Result<Tensor> {
    // SAFETY: libtorch checks shapes, kinds and devices; the tensors outlive the call.
    let [out] = made(|out| unsafe {
        gavel_flash_attention_shared(
            query.as_ptr(),
            stored.keys.as_ptr(),
            stored.values.as_ptr(),
            rows.starts.as_ptr(),
            rows.prompts.first_queries.as_ptr(),
            rows.prompts.starts.as_ptr(),
            rows.longest,
            rows.prompts.most_queries,
            rows.prompts.most_keys,
            rows.follower_tokens,
            rows.prompt_tokens,
            scale,
            out,
        )
    })?;
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::autograd::backward;

    /// Numbers that look random, between -1 and 1.
    fn numbers(seed: i64, shape: &[i64], kind: Kind) -> Tensor {
        let count: i64 = shape.iter().product();
        let numbers: Vec<f64> = (0..count).map(|i| ((i * 37 + seed * 101) as f64 * 0.7391).sin()).collect();
        Tensor::from_slice(&numbers).view(shape).to_kind(kind)
    }

    /// By definition, in 64 bits.
    fn expected(query: &Tensor, keys: &Tensor, values: &Tensor, row: (i64, i64), scoring: Scoring) -> Tensor {
        let (start, length) = row;
        let first = scoring.window.map_or(0, |window| (length - window).max(0));
        let group = query.size()[0] / keys.size()[1];
        let seen = |x: &Tensor| {
            let own = x.narrow(0, start + first, length - first).to_kind(Kind::Double);
            own.repeat_interleave_self_int(group, 1, None).transpose(0, 1)
        };
        let scores = query.to_kind(Kind::Double).unsqueeze(1).bmm(&seen(keys).transpose(1, 2)) * scoring.scale;
        scores.softmax(-1, None).bmm(&seen(values)).squeeze_dim(1)
    }

    #[test]
    fn each_row_attends_to_its_own_keys_alone() {
        let places = [(3, 1), (40, 17), (4, 9), (100, 300), (60, 40)];
        let [starts, lengths] =
            [places.map(|place| place.0), places.map(|place| place.1)].map(|x| Tensor::from_slice(&x));
        for (kind, tolerance) in
            [(Kind::Double, 1e-12), (Kind::Float, 2e-6), (Kind::BFloat16, 4e-3), (Kind::Half, 5e-4)]
        {
            for (heads, kv_heads, width, window) in
                [(4, 2, 8, None), (6, 1, 5, Some(7)), (3, 3, 64, None), (14, 2, 64, Some(1))]
            {
                let scoring = Scoring { scale: 0.7, window };
                let [keys, values] = [1, 2].map(|seed| numbers(seed, &[400, kv_heads, width], kind));
                // Not neighbours in memory, as a part of a projection is not.
                let query = numbers(3, &[5, heads + 2, width], kind).narrow(1, 0, heads);
                // A place that is not finite and belongs to nobody.
                let _ = keys.get(0).fill_(f64::NAN);
                let stored = Stored { keys: &keys, values: &values };
                let found = attend_last(&query, stored, [&starts, &lengths], scoring).unwrap();
                assert_eq!((found.size(), found.kind()), (vec![5, heads, width], kind));
                for (row, place) in places.into_iter().enumerate() {
                    let expected = expected(&query.get(row as i64), &keys, &values, place, scoring);
                    let difference = found.get(row as i64).to_kind(Kind::Double) - expected;
                    let difference = difference.abs().max().double_value(&[]);
                    assert!(difference <= tolerance, "{kind:?}, {heads} heads, row {row}: {difference}");
                }
            }
        }
    }

    #[test]
    fn many_rows_are_divided_among_threads() {
        let (rows, length) = (37, 150);
        let [starts, lengths] = [0, 1].map(|of| {
            let numbers: Vec<i64> = (0..rows).map(|row| if of == 0 { row * length } else { 1 + row * 4 }).collect();
            Tensor::from_slice(&numbers)
        });
        let [keys, values] = [1, 2].map(|seed| numbers(seed, &[rows * length, 2, 64], Kind::Float));
        let query = numbers(5, &[rows, 4, 64], Kind::Float);
        let stored = Stored { keys: &keys, values: &values };
        let scoring = Scoring { scale: 0.125, window: None };
        let all = attend_last(&query, stored, [&starts, &lengths], scoring).unwrap();
        for row in 0..rows {
            let one = |x: &Tensor| x.narrow(0, row, 1);
            let found = attend_last(&one(&query), stored, [&one(&starts), &one(&lengths)], scoring).unwrap();
            assert_eq!(found.get(0), all.get(row), "row {row} depends on its neighbours");
        }
    }

    #[test]
    fn rows_outside_the_store_are_refused() {
        let store = numbers(1, &[10, 2, 4], Kind::Float);
        let query = numbers(2, &[1, 4, 4], Kind::Float);
        let attend = |start: i64, length: i64| {
            let places = [Tensor::from_slice(&[start]), Tensor::from_slice(&[length])];
            let stored = Stored { keys: &store, values: &store };
            let scoring = Scoring { scale: 1.0, window: None };
            attend_last(&query, stored, [&places[0], &places[1]], scoring)
        };
        assert!(attend(5, 5).is_ok());
        for (start, length) in [(5, 6), (-1, 2), (3, 0)] {
            assert!(attend(start, length).unwrap_err().to_string().contains("not within 10 places"));
        }
    }

    #[test]
    fn flash_attention_is_refused_without_a_gpu() {
        let store = numbers(1, &[10, 2, 8], Kind::BFloat16);
        let ints = |numbers: &[i32]| Tensor::from_slice(numbers);
        let rows = FlashRows {
            first_queries: ints(&[0, 1]),
            starts: ints(&[0, 0]),
            lengths: Some(ints(&[5])),
            most_queries: 1,
            most_keys: 5,
        };
        let query = numbers(2, &[1, 4, 8], Kind::BFloat16);
        let stored = Stored { keys: &store, values: &store };
        let error = flash(&query, stored, &rows, Scoring { scale: 1.0, window: None }).unwrap_err().to_string();
        assert!(error.contains("_flash_attention_forward"), "{error}");
    }

    /// Where a row is: its start and its length.
    type Place = (i64, i64);

    /// Attention of each row after the prompt that it follows, if any, by libtorch's softmax.
    fn attended([query, keys, values]: &[Tensor; 3], rows: &[(Place, Option<Place>)], scale: f64) -> Tensor {
        let group = query.size()[1] / keys.size()[1];
        let of_row = |&((start, length), prompt): &(Place, Option<Place>)| {
            let seen = |x: &Tensor| {
                let prompt = prompt.map(|(start, length)| x.narrow(0, start, length));
                let all: Vec<Tensor> = prompt.into_iter().chain([x.narrow(0, start, length)]).collect();
                Tensor::cat(&all, 0).repeat_interleave_self_int(group, 1, None).transpose(0, 1)
            };
            let scores = query.narrow(0, start, length).transpose(0, 1).bmm(&seen(keys).transpose(1, 2)) * scale;
            let later = Tensor::ones_like(&scores).triu(1 + prompt.map_or(0, |prompt| prompt.1));
            let scores = scores.masked_fill(&later.to_kind(Kind::Bool), f64::NEG_INFINITY);
            scores.softmax(-1, None).bmm(&seen(values)).transpose(0, 1)
        };
        Tensor::cat(&rows.iter().map(of_row).collect::<Vec<_>>(), 0)
    }

    #[test]
    fn rows_attend_to_the_prompt_that_they_share() {
        // Two prompts, a row alone, two rows after the first prompt and one after the second.
        let prompts = [Some((0, 3)), Some((3, 2))];
        let places = [(0, 3), (3, 2), (5, 2), (7, 2), (9, 1), (10, 4)];
        let after = [None, None, None, prompts[0], prompts[0], prompts[1]];
        let rows: Vec<_> = places.into_iter().zip(after).collect();
        let ints = |numbers: &[i32]| Tensor::from_slice(numbers);
        let shared = SharedRows {
            starts: ints(&[0, 3, 5, 7, 9, 10, 14]),
            longest: 4,
            prompts: FlashRows {
                first_queries: ints(&[0, 3, 7]),
                starts: ints(&[0, 3, 5]),
                lengths: None,
                most_queries: 4,
                most_keys: 3,
            },
            prompt_tokens: 5,
            follower_tokens: 7,
        };
        let scale = 0.7;
        let inputs = [(1, 4), (2, 2), (3, 2)].map(|(seed, heads)| numbers(seed, &[14, heads, 8], Kind::Double));
        let all = |attend: &dyn Fn(&[Tensor; 3]) -> Tensor| {
            let leaves = inputs.each_ref().map(|x| x.copy().set_requires_grad(true));
            let out = attend(&leaves);
            backward(&out, &numbers(4, &[14, 4, 8], Kind::Double)).unwrap();
            let [query, keys, values] = leaves.map(|leaf| leaf.grad());
            [out.detach(), query, keys, values]
        };
        let attend =
            |[query, keys, values]: &[Tensor; 3]| flash_shared(query, Stored { keys, values }, &shared, scale).unwrap();
        let (found, plain) = (all(&attend), all(&|inputs: &[Tensor; 3]| attended(inputs, &rows, scale)));
        for (found, plain) in found.iter().zip(&plain) {
            assert_eq!(found.size(), plain.size());
            let difference = (found - plain).abs().max().double_value(&[]);
            assert!(difference < 1e-12, "{difference}");
        }
        let without = attend(&inputs);
        assert!(without.equal(&found[0]) && !without.requires_grad());
    }
}
