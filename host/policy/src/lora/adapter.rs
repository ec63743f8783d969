//! The adapters of one linear map.

use super::module::Module;
use super::sizes::Size;
use crate::error::Result;
use tch::{Kind, Tensor};

/// The adapters of a linear map's modules, in 32 bits where the map has 16.
pub(crate) struct Adapter {
    /// The A of the modules that have an adapter, one below the other, so that
    /// they are one multiplication: `[sum of ranks, in]`.
    a: Tensor,
    /// What each row of A is multiplied by: `[sum of ranks]`.
    scales: Tensor,
    /// The rows of each module of the map.
    outs: Vec<Out>,
}

/// The rows of a module.
struct Out {
    module: Module,
    rows: i64,
    up: Option<Up>,
}

/// The map from the low rank to the rows of a module.
struct Up {
    /// `[rows, rank]`
    b: Tensor,
    size: Size,
}

impl Adapter {
    /// The name that `parts` of a linear map has for its A.
    pub(crate) const A: &str = "lora_A.weight";
    /// The name that a module has for its B.
    pub(crate) const B: &str = "lora_B.weight";

    /// Adapters that are 0, beside the `weight` of a map whose `modules` have
    /// these numbers of rows. `size` gives their sizes; `None` if no module has
    /// an adapter.
    pub(crate) fn zeros(
        modules: &[(Module, i64)],
        weight: &Tensor,
        size: impl Fn(Module) -> Option<Size>,
        rslora: bool,
    ) -> Result<Option<Self>> {
        let kind = if weight.kind() == Kind::Double { Kind::Double } else { Kind::Float };
        let options = (kind, weight.device());
        let out = |&(module, rows): &(Module, i64)| {
            let up = |size: Size| -> Result<Up> { Ok(Up { b: Tensor::f_zeros([rows, size.rank], options)?, size }) };
            Ok(Out { module, rows, up: size(module).map(up).transpose()? })
        };
        let outs = modules.iter().map(out).collect::<Result<Vec<_>>>()?;
        let sizes = outs.iter().filter_map(|out| Some(out.up.as_ref()?.size));
        let scales: Vec<f64> =
            sizes.flat_map(|size| std::iter::repeat_n(size.scale(rslora), size.rank as usize)).collect();
        if scales.is_empty() {
            return Ok(None);
        }
        let a = Tensor::f_zeros([scales.len() as i64, weight.size()[1]], options)?;
        let scales = Tensor::f_from_slice(&scales)?.f_to_kind(kind)?.f_to_device(options.1)?;
        Ok(Some(Self { a, scales, outs }))
    }

    /// The same adapters, in the same memory.
    pub(crate) fn shallow_clone(&self) -> Self {
        let up = |up: &Up| Up { b: up.b.shallow_clone(), size: up.size };
        let out = |out: &Out| Out { module: out.module, rows: out.rows, up: out.up.as_ref().map(up) };
        Self {
            a: self.a.shallow_clone(),
            scales: self.scales.shallow_clone(),
            outs: self.outs.iter().map(out).collect(),
        }
    }

    /// `y`, `[tokens, out]`, plus the output of the adapters for `x`, `[tokens,
    /// in]`: `y + scale · B A x` for each module.
    pub(crate) fn apply_onto(&self, y: &Tensor, x: &Tensor) -> Result<Tensor> {
        let low = x.f_to_kind(self.a.kind())?.f_linear(&self.a, None::<&Tensor>)?.f_mul(&self.scales)?;
        self.add(y, &low, 1, |rows, low, b| Ok(rows.f_addmm(low, &b.f_tr()?)?))
    }

    /// `weight`, `[out, in]`, plus the adapters: `W + scale · B A` for each
    /// module.
    pub(crate) fn merged_with(&self, weight: &Tensor) -> Result<Tensor> {
        let low = self.a.f_mul(&self.scales.f_unsqueeze(1)?)?;
        self.add(weight, &low, 0, |rows, low, b| Ok(rows.f_addmm(b, low)?))
    }

    /// Calls `one` for each module to add the output of its B for its part of
    /// `low` to its rows of `onto`. Both lie along `dim`. The sum is then
    /// rounded to the kind of `onto`.
    fn add(
        &self,
        onto: &Tensor,
        low: &Tensor,
        dim: i64,
        one: impl Fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let wide = onto.f_to_kind(self.a.kind())?;
        if let [Out { up: Some(Up { b, .. }), .. }] = self.outs.as_slice() {
            return Ok(one(&wide, low, b)?.f_to_kind(onto.kind())?);
        }
        let rows: Vec<i64> = self.outs.iter().map(|out| out.rows).collect();
        let rows = wide.f_split_with_sizes(rows.as_slice(), dim)?;
        let lows = low.f_split_with_sizes(self.ranks().collect::<Vec<_>>().as_slice(), dim)?;
        let sums = self.outs.iter().zip(rows).zip(lows).map(|((out, rows), low)| match &out.up {
            Some(Up { b, .. }) => one(&rows, &low, b),
            None => Ok(rows),
        });
        Ok(Tensor::f_cat(&sums.collect::<Result<Vec<_>>>()?, dim)?.f_to_kind(onto.kind())?)
    }

    /// The rank of each module of the map; 0 where it has no adapter.
    pub(crate) fn ranks(&self) -> impl Iterator<Item = i64> + '_ {
        self.outs.iter().map(Out::rank)
    }

    /// The modules that have an adapter, and its size.
    pub(crate) fn sizes(&self) -> impl Iterator<Item = (Module, Size)> + '_ {
        self.outs.iter().filter_map(|out| Some((out.module, out.up.as_ref()?.size)))
    }

    /// The tensors with their names in the layer, where the map is called
    /// `map`. They share their memory with the adapters.
    pub(crate) fn tensors(&self, map: &str) -> Vec<(String, Tensor)> {
        let mut all = vec![(format!("{map}.{}", Self::A), self.a.shallow_clone())];
        for Out { module, up, .. } in &self.outs {
            all.extend(up.as_ref().map(|up| (format!("{}.{}", module.path(), Self::B), up.b.shallow_clone())));
        }
        all
    }

    /// The A of each module that has an adapter, `[rank, in]`, in the same
    /// memory.
    pub(crate) fn each_a(&self) -> Result<Vec<(Module, Tensor)>> {
        let parts = self.a.f_split_with_sizes(self.ranks().collect::<Vec<_>>().as_slice(), 0)?;
        let modules = self.outs.iter().map(|out| out.module);
        Ok(modules.zip(parts).filter(|(_, a)| a.size()[0] > 0).collect())
    }
}

impl Out {
    fn rank(&self) -> i64 {
        self.up.as_ref().map_or(0, |up| up.size.rank)
    }
}
