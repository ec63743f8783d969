//! The types of modules that are imported.

use super::not_split::NotSplit;
use wasm_encoder::reencode::{Reencode, RoundtripReencoder};
use wasm_encoder::{EntityType, ModuleType};
use wasmparser::{ExternalKind, FuncType, GlobalType, MemoryType, Parser, Payload, TableType, TypeRef, ValType};

/// The items of a module, by index.
#[derive(Default)]
struct Items {
    types: Vec<FuncType>,
    functions: Vec<u32>,
    tables: Vec<TableType>,
    memories: Vec<MemoryType>,
    globals: Vec<GlobalType>,
}

/// The type of a module.
pub(super) fn module_type(wasm: &[u8]) -> Result<ModuleType, NotSplit> {
    let mut items = Items::default();
    let mut ty = ModuleType::new();
    for payload in Parser::new(0).parse_all(wasm) {
        match payload? {
            Payload::TypeSection(types) => {
                for function in types.into_iter_err_on_gc_types() {
                    items.types.push(function?);
                }
            }
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import?;
                    let imported = items.add(&mut ty, import.ty)?;
                    ty.import(import.module, import.name, imported);
                }
            }
            Payload::FunctionSection(functions) => {
                for function in functions {
                    items.functions.push(function?);
                }
            }
            Payload::TableSection(tables) => {
                for table in tables {
                    let ty = table?.ty;
                    check(ValType::Ref(ty.element_type))?;
                    items.tables.push(ty);
                }
            }
            Payload::MemorySection(memories) => {
                for memory in memories {
                    items.memories.push(memory?);
                }
            }
            Payload::GlobalSection(globals) => {
                for global in globals {
                    let ty = global?.ty;
                    check(ty.content_type)?;
                    items.globals.push(ty);
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    let export = export?;
                    let exported = items.exported(&mut ty, export.kind, export.index as usize)?;
                    ty.export(export.name, exported);
                }
            }
            _ => {}
        }
    }
    Ok(ty)
}

impl Items {
    /// Adds an imported item, and returns its type.
    fn add(&mut self, ty: &mut ModuleType, import: TypeRef) -> Result<EntityType, NotSplit> {
        match import {
            TypeRef::Func(function) => {
                self.functions.push(function);
                self.function(ty, function)
            }
            TypeRef::Table(table) => {
                check(ValType::Ref(table.element_type))?;
                self.tables.push(table);
                Ok(EntityType::Table(RoundtripReencoder.table_type(table)?))
            }
            TypeRef::Memory(memory) => {
                self.memories.push(memory);
                Ok(EntityType::Memory(RoundtripReencoder.memory_type(memory)?))
            }
            TypeRef::Global(global) => {
                check(global.content_type)?;
                self.globals.push(global);
                Ok(EntityType::Global(RoundtripReencoder.global_type(global)?))
            }
            _ => Err(NotSplit::Form("it imports something that no language's tools use")),
        }
    }

    fn exported(&self, ty: &mut ModuleType, kind: ExternalKind, index: usize) -> Result<EntityType, NotSplit> {
        fn item<T: Copy>(items: &[T], index: usize) -> Result<T, NotSplit> {
            items.get(index).copied().ok_or(NotSplit::Cut)
        }
        Ok(match kind {
            ExternalKind::Func | ExternalKind::FuncExact => self.function(ty, item(&self.functions, index)?)?,
            ExternalKind::Table => EntityType::Table(RoundtripReencoder.table_type(item(&self.tables, index)?)?),
            ExternalKind::Memory => EntityType::Memory(RoundtripReencoder.memory_type(item(&self.memories, index)?)?),
            ExternalKind::Global => EntityType::Global(RoundtripReencoder.global_type(item(&self.globals, index)?)?),
            ExternalKind::Tag => return Err(NotSplit::Form("it exports an exception")),
        })
    }

    fn function(&self, ty: &mut ModuleType, function: u32) -> Result<EntityType, NotSplit> {
        let function = self.types.get(function as usize).ok_or(NotSplit::Cut)?;
        let types = |types: &[ValType]| {
            let written = types.iter().map(|ty| {
                check(*ty)?;
                Ok(RoundtripReencoder.val_type(*ty)?)
            });
            written.collect::<Result<Vec<_>, NotSplit>>()
        };
        ty.ty().function(types(function.params())?, types(function.results())?);
        Ok(EntityType::Function(ty.type_count() - 1))
    }
}

/// Refuses a reference to one of the module's types, which have other numbers here.
fn check(ty: ValType) -> Result<(), NotSplit> {
    match ty {
        ValType::Ref(reference) if reference.type_index().is_some() => {
            Err(NotSplit::Form("it has references to types of its own"))
        }
        _ => Ok(()),
    }
}
