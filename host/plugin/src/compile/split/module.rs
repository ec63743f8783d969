//! The module that is split, and its code as a module.

use super::names::MEMORY;
use super::not_split::NotSplit;
use crate::compile::globals::{Number, exported_name, only_operator};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use wasm_encoder::reencode::{Reencode, RoundtripReencoder};
use wasm_encoder::{
    EntityType, ExportKind, ExportSection, GlobalSection, ImportSection, MemoryType, Module, RawSection, SectionId,
};
use wasmparser::{DataKind, Export, Operator, Parser, Payload, TypeRef};

/// The sections of the code in the order of a module; a custom section with names ends it.
const ORDER: [SectionId; 10] = [
    SectionId::Type,
    SectionId::Import,
    SectionId::Function,
    SectionId::Table,
    SectionId::Tag,
    SectionId::Global,
    SectionId::Export,
    SectionId::Element,
    SectionId::Code,
    SectionId::Custom,
];

/// The names under which `wasmtime_wizer` exports what a snapshot reads. The code has them in any case, so that it is the
/// same before and after the snapshot. With other names, it is compiled for both.
const WIZER_MEMORY: &str = "__wizer_memory_0";

fn wizer_global(index: u32) -> String {
    format!("__wizer_global_{index}")
}

/// What is read of the module.
pub(super) struct Reader<'a> {
    wasm: &'a [u8],
    sections: BTreeMap<u8, Range<usize>>,
    /// The functions that it imports, by module, name and type.
    imports: Vec<(&'a str, &'a str, u32)>,
    pub(super) memory: MemoryType,
    globals: Vec<wasmparser::Global<'a>>,
    exports: Vec<Export<'a>>,
    /// The globals that its code sets, with what they start as.
    pub(super) set: BTreeMap<u32, Number>,
}

impl<'a> Reader<'a> {
    /// Refuses a module whose memory and globals cannot be told from its code.
    pub(super) fn of(wasm: &'a [u8]) -> Result<Self, NotSplit> {
        let mut reader = Self {
            wasm,
            sections: BTreeMap::new(),
            imports: Vec::new(),
            memory: any_memory(),
            globals: Vec::new(),
            exports: Vec::new(),
            set: BTreeMap::new(),
        };
        let mut set = BTreeSet::new();
        for payload in Parser::new(0).parse_all(wasm) {
            reader.read(payload?, &mut set)?;
        }
        for index in set {
            let global = reader.globals.get(index as usize).ok_or(NotSplit::Cut)?;
            let value = Number::of(&global.init_expr)?;
            reader.set.insert(index, value.ok_or(NotSplit::Form("a global that changes does not start as a number"))?);
        }
        reader.check_exports()?;
        Ok(reader)
    }

    /// The content of a section.
    pub(super) fn section(&self, id: SectionId) -> Option<&'a [u8]> {
        self.wasm.get(self.sections.get(&id.into())?.clone())
    }

    fn read(&mut self, payload: Payload<'a>, set: &mut BTreeSet<u32>) -> Result<(), NotSplit> {
        if let Some((id, range)) = payload.as_section()
            && id != u8::from(SectionId::Custom)
        {
            self.sections.insert(id, range.start as usize..range.end as usize);
        }
        match payload {
            Payload::ImportSection(imports) => {
                for import in imports.into_imports() {
                    let import = import?;
                    let TypeRef::Func(ty) = import.ty else {
                        return Err(NotSplit::Form("it imports more than functions"));
                    };
                    self.imports.push((import.module, import.name, ty));
                }
            }
            Payload::MemorySection(memories) => {
                for memory in memories {
                    self.memory = RoundtripReencoder.memory_type(memory?)?;
                }
                if self.memory.memory64 || self.memory.shared || self.memory.page_size_log2.is_some() {
                    return Err(NotSplit::Form("its memory has a form that no language's tools make"));
                }
            }
            Payload::GlobalSection(globals) => {
                for global in globals {
                    self.globals.push(global?);
                }
            }
            Payload::ExportSection(exports) => {
                for export in exports {
                    self.exports.push(export?);
                }
            }
            Payload::DataSection(segments) => {
                for segment in segments {
                    // The code uses no passive ones. A snapshot has an empty one in place of each active one before it.
                    if let DataKind::Active { offset_expr, .. } = segment?.kind
                        && !matches!(only_operator(&offset_expr)?, Some(Operator::I32Const { .. }))
                    {
                        return Err(NotSplit::Form("the place of a data segment is not a number"));
                    }
                }
            }
            Payload::CodeSectionEntry(body) => {
                for operator in body.get_operators_reader()? {
                    match operator? {
                        Operator::GlobalSet { global_index } => {
                            set.insert(global_index);
                        }
                        Operator::MemoryInit { .. } | Operator::DataDrop { .. } => {
                            return Err(NotSplit::Form("its code uses data segments"));
                        }
                        _ => {}
                    }
                }
            }
            Payload::CustomSection(custom) if custom.name() == "name" => {
                let range = custom.range();
                self.sections.insert(SectionId::Custom.into(), range.start as usize..range.end as usize);
            }
            _ => {}
        }
        Ok(())
    }

    /// The indices of globals that may change.
    fn mutable(&self) -> impl Iterator<Item = u32> {
        (0..).zip(&self.globals).filter(|(_, global)| global.ty.mutable).map(|(index, _)| index)
    }

    /// The exports that the code has in any case, after those that it was built with.
    fn added_exports(&self) -> Vec<(String, ExportKind, u32)> {
        let global = |index| [exported_name(index), wizer_global(index)].map(|name| (name, ExportKind::Global, index));
        self.mutable().flat_map(global).chain([(WIZER_MEMORY.to_owned(), ExportKind::Memory, 0)]).collect()
    }

    /// The exports that it was built with.
    fn built_exports(&self) -> impl Iterator<Item = &Export<'a>> {
        let added: BTreeSet<String> = self.added_exports().into_iter().map(|(name, ..)| name).collect();
        self.exports.iter().filter(move |export| !added.contains(export.name))
    }

    /// Refuses exports under the names of others.
    fn check_exports(&self) -> Result<(), NotSplit> {
        let added: BTreeMap<String, (ExportKind, u32)> =
            self.added_exports().into_iter().map(|(name, kind, index)| (name, (kind, index))).collect();
        for export in &self.exports {
            let kind = RoundtripReencoder.export_kind(export.kind)?;
            if added.get(export.name).is_some_and(|expected| *expected != (kind, export.index)) {
                return Err(NotSplit::Form("it exports something under a name that the host uses"));
            }
        }
        Ok(())
    }

    /// The module with the code.
    pub(super) fn code(&self) -> Result<Vec<u8>, NotSplit> {
        let mut module = Module::new();
        for id in ORDER {
            match id {
                SectionId::Import => module.section(&self.code_imports()),
                SectionId::Global => module.section(&self.code_globals()?),
                SectionId::Export => module.section(&self.code_exports()?),
                id => match self.section(id) {
                    Some(data) => module.section(&RawSection { id: id.into(), data }),
                    None => continue,
                },
            };
        }
        Ok(module.finish())
    }

    fn code_imports(&self) -> ImportSection {
        let mut imports = ImportSection::new();
        for (module, name, ty) in &self.imports {
            imports.import(module, name, EntityType::Function(*ty));
        }
        // Last, so that functions keep their indices.
        imports.import(MEMORY, MEMORY, any_memory());
        imports
    }

    /// The globals; those that the code sets start as zero, and then get what they start as in this component.
    fn code_globals(&self) -> Result<GlobalSection, NotSplit> {
        let mut globals = GlobalSection::new();
        for (index, global) in (0..).zip(&self.globals) {
            match self.set.get(&index) {
                Some(value) => {
                    globals.global(RoundtripReencoder.global_type(global.ty)?, &value.zero());
                }
                None => RoundtripReencoder.parse_global(&mut globals, global.clone())?,
            }
        }
        Ok(globals)
    }

    fn code_exports(&self) -> Result<ExportSection, NotSplit> {
        let mut exports = ExportSection::new();
        for export in self.built_exports() {
            exports.export(export.name, RoundtripReencoder.export_kind(export.kind)?, export.index);
        }
        for (name, kind, index) in self.added_exports() {
            exports.export(&name, kind, index);
        }
        Ok(exports)
    }
}

/// A memory of any size.
pub(super) fn any_memory() -> MemoryType {
    MemoryType { minimum: 0, maximum: None, memory64: false, shared: false, page_size_log2: None }
}
