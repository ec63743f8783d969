//! The indices of the merged module.

use super::graph::{KINDS, Kind};
use super::member::{Definer, Member};
use super::not_merged::NotMerged;
use crate::compile::globals::only_operator;
use std::collections::{BTreeSet, HashMap};
use wasm_encoder::reencode::{Error, Reencode, utils};
use wasm_encoder::{ConstExpr, Instruction};
use wasmparser::Operator;

/// The first index of each member.
pub(super) struct Indices {
    /// By kind and member.
    items: [Vec<u32>; KINDS],
    types: Vec<u32>,
    elements: Vec<u32>,
    data: Vec<u32>,
    /// How many types each member has.
    type_counts: Vec<u32>,
}

impl Indices {
    pub(super) fn new(members: &[Member<'_>], imported_functions: u32) -> Self {
        let sums = |first: u32, count: &dyn Fn(&Member<'_>) -> u32| {
            let mut next = first;
            let mut sums = Vec::with_capacity(members.len());
            for member in members {
                sums.push(next);
                next += count(member);
            }
            sums
        };
        Self {
            items: std::array::from_fn(|kind| {
                let first = if kind == Kind::Function as usize { imported_functions } else { 0 };
                sums(first, &|member| member.defined[kind])
            }),
            types: sums(0, &|member| member.types),
            elements: sums(0, &|member| member.elements),
            data: sums(0, &|member| member.data),
            type_counts: members.iter().map(|member| member.types).collect(),
        }
    }

    pub(super) fn index(&self, kind: Kind, definer: Definer) -> u32 {
        match definer {
            Definer::Import(number) => number,
            Definer::Member { member, number } => self.items[kind as usize][member].wrapping_add(number),
        }
    }

    /// The index of a member's type.
    pub(super) fn ty(&self, member: usize, ty: u32) -> Result<u32, NotMerged> {
        if ty < self.type_counts[member] { Ok(self.types[member] + ty) } else { Err(NotMerged::Missing) }
    }

    /// The indices of a member's items.
    pub(super) fn mapping<'m>(
        &self,
        number: usize,
        member: &Member<'_>,
        constants: &'m mut HashMap<u32, ConstExpr>,
    ) -> Mapping<'m> {
        let items = [Kind::Function, Kind::Table, Kind::Memory, Kind::Global, Kind::Tag].map(|kind| {
            let imported = member.imported[kind as usize].iter().map(|definer| self.index(kind, *definer));
            let first = self.items[kind as usize][number];
            imported.chain(first..first + member.defined[kind as usize]).collect()
        });
        Mapping {
            items,
            imported_functions: member.imported[Kind::Function as usize].len(),
            types: (self.types[number], member.types),
            elements: (self.elements[number], member.elements),
            data: (self.data[number], member.data),
            constants,
            referenced: BTreeSet::new(),
        }
    }
}

/// The indices of a member's items in the merged module.
pub(super) struct Mapping<'m> {
    items: [Vec<u32>; KINDS],
    /// How many of its functions the member imports.
    imported_functions: usize,
    /// The first and the number.
    types: (u32, u32),
    elements: (u32, u32),
    data: (u32, u32),
    /// The values of globals that never change.
    pub(super) constants: &'m mut HashMap<u32, ConstExpr>,
    /// The functions that instructions refer to, in the merged module.
    pub(super) referenced: BTreeSet<u32>,
}

impl Mapping<'_> {
    pub(super) fn item(&self, kind: Kind, index: u32) -> Result<u32, Error<NotMerged>> {
        let item = self.items[kind as usize].get(index as usize);
        item.copied().ok_or(Error::UserError(NotMerged::Missing))
    }

    /// Whether the member imports this function.
    pub(super) fn is_import(&self, function: u32) -> bool {
        (function as usize) < self.imported_functions
    }
}

fn offset((first, count): (u32, u32), index: u32) -> Result<u32, Error<NotMerged>> {
    if index < count { Ok(first + index) } else { Err(Error::UserError(NotMerged::Missing)) }
}

impl Reencode for Mapping<'_> {
    type Error = NotMerged;

    fn function_index(&mut self, function: u32) -> Result<u32, Error<NotMerged>> {
        self.item(Kind::Function, function)
    }

    fn table_index(&mut self, table: u32) -> Result<u32, Error<NotMerged>> {
        self.item(Kind::Table, table)
    }

    fn memory_index(&mut self, memory: u32) -> Result<u32, Error<NotMerged>> {
        self.item(Kind::Memory, memory)
    }

    fn global_index(&mut self, global: u32) -> Result<u32, Error<NotMerged>> {
        self.item(Kind::Global, global)
    }

    fn tag_index(&mut self, tag: u32) -> Result<u32, Error<NotMerged>> {
        self.item(Kind::Tag, tag)
    }

    fn type_index(&mut self, ty: u32) -> Result<u32, Error<NotMerged>> {
        offset(self.types, ty)
    }

    fn element_index(&mut self, element: u32) -> Result<u32, Error<NotMerged>> {
        offset(self.elements, element)
    }

    fn data_index(&mut self, data: u32) -> Result<u32, Error<NotMerged>> {
        offset(self.data, data)
    }

    fn instruction<'a>(&mut self, operator: Operator<'a>) -> Result<Instruction<'a>, Error<NotMerged>> {
        let instruction = utils::instruction(self, operator)?;
        if let Instruction::RefFunc(function) = instruction {
            self.referenced.insert(function);
        }
        Ok(instruction)
    }

    /// Writes a constant in place of the global that has it: wasmtime fills tables
    /// lazily, and maps memories, only where offsets are numbers.
    fn const_expr(&mut self, expr: wasmparser::ConstExpr<'_>) -> Result<ConstExpr, Error<NotMerged>> {
        if let Ok(Some(Operator::GlobalGet { global_index })) = only_operator(&expr)
            && let Some(value) = self.constants.get(&self.item(Kind::Global, global_index)?)
        {
            return Ok(value.clone());
        }
        utils::const_expr(self, expr)
    }
}
