//! The modules with the data: one has the memory, and one sets the globals.

use super::module::Reader;
use super::names::MEMORY;
use crate::compile::globals::exported_name;
use wasm_encoder::{
    CodeSection, ExportKind, ExportSection, Function, FunctionSection, GlobalType, ImportSection, MemorySection,
    Module, RawSection, SectionId, StartSection, TypeSection,
};

impl Reader<'_> {
    /// The module with the memory.
    pub(super) fn memory(&self) -> Vec<u8> {
        let mut memories = MemorySection::new();
        memories.memory(self.memory);
        let mut exports = ExportSection::new();
        exports.export(MEMORY, ExportKind::Memory, 0);
        let mut module = Module::new();
        module.section(&memories).section(&exports);
        if let Some(data) = self.section(SectionId::Data) {
            module.section(&RawSection { id: SectionId::Data.into(), data });
        }
        module.finish()
    }

    /// The module that sets the globals of the code when it starts. It imports them by the names under which the code
    /// exports them.
    pub(super) fn start(&self) -> Vec<u8> {
        let (mut types, mut imports, mut functions) =
            (TypeSection::new(), ImportSection::new(), FunctionSection::new());
        types.ty().function([], []);
        functions.function(0);
        let mut start = Function::new([]);
        let mut body = start.instructions();
        for (at, (index, value)) in (0..).zip(&self.set) {
            let ty = GlobalType { val_type: value.val_type(), mutable: true, shared: false };
            imports.import("", &exported_name(*index), ty);
            value.push(&mut body);
            body.global_set(at);
        }
        body.end();
        let mut code = CodeSection::new();
        code.function(&start);
        let mut module = Module::new();
        module.section(&types).section(&imports).section(&functions);
        module.section(&StartSection { function_index: 0 }).section(&code);
        module.finish()
    }
}
