//! The sections of the merged module.

use super::graph::Kind;
use super::indices::Mapping;
use super::member::Member;
use super::not_merged::NotMerged;
use crate::compile::globals::only_operator;
use std::collections::{BTreeMap, BTreeSet};
use wasm_encoder::reencode::Reencode;
use wasm_encoder::{
    CodeSection, DataCountSection, DataSection, ElementSection, Elements, EntityType, ExportSection, FunctionSection,
    GlobalSection, ImportSection, MemorySection, Module, NameMap, NameSection, StartSection, TableSection, TagSection,
    TypeSection,
};
use wasmparser::{KnownCustom, Name, Operator, Parser, Payload};

#[derive(Default)]
pub(super) struct Sections {
    types: TypeSection,
    imports: ImportSection,
    functions: FunctionSection,
    tables: TableSection,
    memories: MemorySection,
    tags: TagSection,
    globals: GlobalSection,
    exports: ExportSection,
    start: Option<StartSection>,
    elements: ElementSection,
    /// The functions that an instruction refers to. An export that is left out may
    /// have declared them.
    referenced: BTreeSet<u32>,
    code: CodeSection,
    data: DataSection,
    /// The names of functions, which backtraces show.
    names: BTreeMap<u32, String>,
}

impl Sections {
    pub(super) fn add_import(&mut self, ty: u32) {
        let name = self.imports.len().to_string();
        self.imports.import("", &name, EntityType::Function(ty));
    }

    pub(super) fn add_export(&mut self, name: &str, kind: Kind, index: u32) {
        self.exports.export(name, kind.into(), index);
    }

    pub(super) fn add(&mut self, member: &Member<'_>, map: &mut Mapping<'_>) -> Result<(), NotMerged> {
        for payload in Parser::new(0).parse_all(member.wasm) {
            match payload? {
                Payload::TypeSection(section) => map.parse_type_section(&mut self.types, section)?,
                Payload::FunctionSection(section) => map.parse_function_section(&mut self.functions, section)?,
                Payload::TableSection(section) => map.parse_table_section(&mut self.tables, section)?,
                Payload::MemorySection(section) => map.parse_memory_section(&mut self.memories, section)?,
                Payload::TagSection(section) => map.parse_tag_section(&mut self.tags, section)?,
                Payload::GlobalSection(section) => {
                    section.into_iter().try_for_each(|global| self.add_global(global?, map))?;
                }
                Payload::StartSection { func, .. } => {
                    self.start = Some(StartSection { function_index: map.function_index(func)? });
                }
                Payload::ElementSection(section) => map.parse_element_section(&mut self.elements, section)?,
                Payload::CodeSectionEntry(body) => map.parse_function_body(&mut self.code, body)?,
                Payload::DataSection(section) => map.parse_data_section(&mut self.data, section)?,
                Payload::CustomSection(custom) => {
                    if let KnownCustom::Name(names) = custom.as_known() {
                        self.add_names(names, map);
                    }
                }
                _ => {}
            }
        }
        self.referenced.append(&mut map.referenced);
        Ok(())
    }

    fn add_global(&mut self, global: wasmparser::Global<'_>, map: &mut Mapping<'_>) -> Result<(), NotMerged> {
        let ty = map.global_type(global.ty)?;
        let is_number =
            matches!(only_operator(&global.init_expr), Ok(Some(Operator::I32Const { .. } | Operator::I64Const { .. })));
        let value = map.const_expr(global.init_expr)?;
        if is_number && !ty.mutable {
            map.constants.insert(self.globals.len(), value.clone());
        }
        self.globals.global(ty, &value);
        Ok(())
    }

    /// Names only explain a backtrace, so damaged ones are left out.
    fn add_names(&mut self, names: wasmparser::NameSectionReader<'_>, map: &Mapping<'_>) {
        for names in names.into_iter().flatten() {
            let Name::Function(functions) = names else { continue };
            // What a module calls an import is no name of the function: it may be the host's.
            for function in functions.into_iter().flatten().filter(|function| !map.is_import(function.index)) {
                if let Ok(index) = map.item(Kind::Function, function.index) {
                    self.names.insert(index, function.name.to_owned());
                }
            }
        }
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        if !self.referenced.is_empty() {
            let referenced: Vec<_> = self.referenced.into_iter().collect();
            self.elements.declared(Elements::Functions(referenced.into()));
        }
        let mut module = Module::new();
        module.section(&self.types).section(&self.imports).section(&self.functions);
        module.section(&self.tables).section(&self.memories);
        // Even without a tag, the section needs an engine with exceptions.
        if !self.tags.is_empty() {
            module.section(&self.tags);
        }
        module.section(&self.globals).section(&self.exports);
        if let Some(start) = &self.start {
            module.section(start);
        }
        module.section(&self.elements).section(&DataCountSection { count: self.data.len() });
        module.section(&self.code).section(&self.data);
        let mut functions = NameMap::new();
        self.names.iter().for_each(|(index, name)| functions.append(*index, name));
        let mut names = NameSection::new();
        names.functions(&functions);
        module.section(&names);
        module.finish()
    }
}
