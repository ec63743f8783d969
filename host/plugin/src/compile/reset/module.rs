//! The module that sets an instance back.

use super::functions::STRETCHES;
use super::parts::Parts;
use wasm_encoder::{
    BlockType, CodeSection, DataCountSection, DataSection, EntityType, ExportKind, ExportSection, Function,
    FunctionSection, GlobalType, ImportSection, InstructionSink, MemArg, MemoryType, Module, TypeSection, ValType,
};

/// The names of what it exports.
pub(super) const MEMORY_START: &str = "memory-start";
pub(super) const MEMORY: &str = "memory";
pub(super) const REST: &str = "rest";

/// The names of what it imports, beside globals.
pub(super) const IMPORTED_MEMORY: &str = "memory";
pub(super) const NEW_HANDLE: &str = "new";
pub(super) const DROP_HANDLE: &str = "drop";

/// The name under which it imports a global.
pub(super) fn global_name(global: usize) -> String {
    format!("global-{global}")
}

/// The types of functions, by index.
const START_TYPE: u32 = 0;
const MEMORY_TYPE: u32 = 1;
const ONE_TO_ONE: u32 = 2;
const DROP_TYPE: u32 = 3;
/// The functions that it imports, by index.
const NEW: u32 = 0;
const DROP: u32 = 1;
const IMPORTED: u32 = 2;

/// The module's bytes.
pub(super) fn reset_module(parts: &Parts) -> Vec<u8> {
    let mut types = TypeSection::new();
    types.ty().function([], [ValType::I32]);
    types.ty().function([ValType::I32; 2 * STRETCHES], []);
    types.ty().function([ValType::I32], [ValType::I32]);
    types.ty().function([ValType::I32], []);
    let mut imports = ImportSection::new();
    let memory = MemoryType { minimum: 0, maximum: None, memory64: false, shared: false, page_size_log2: None };
    imports.import("", IMPORTED_MEMORY, memory);
    imports.import("", NEW_HANDLE, EntityType::Function(ONE_TO_ONE));
    imports.import("", DROP_HANDLE, EntityType::Function(DROP_TYPE));
    for (at, global) in parts.globals.iter().enumerate() {
        let ty = GlobalType { val_type: global.value.val_type(), mutable: true, shared: false };
        imports.import("", &global_name(at), ty);
    }
    let mut functions = FunctionSection::new();
    let mut exports = ExportSection::new();
    let mut code = CodeSection::new();
    let bodies = [
        (MEMORY_START, START_TYPE, memory_start()),
        (MEMORY, MEMORY_TYPE, set_memory_back()),
        (REST, ONE_TO_ONE, set_rest_back(parts)),
    ];
    for (index, (name, ty, body)) in (IMPORTED..).zip(bodies) {
        functions.function(ty);
        exports.export(name, ExportKind::Func, index);
        code.function(&body);
    }
    let mut data = DataSection::new();
    data.passive(parts.image.0.iter().copied());
    let mut module = Module::new();
    module.section(&types).section(&imports).section(&functions).section(&exports);
    module.section(&DataCountSection { count: 1 }).section(&code).section(&data);
    module.finish()
}

/// Writes an empty list to the start of the memory, with its data there. This page is set back as any that was written.
fn memory_start() -> Function {
    let place = MemArg { offset: 0, align: 0, memory_index: 0 };
    let mut function = Function::new([]);
    function.instructions().i32_const(0).i64_const(0).i64_store(place).i32_const(0).end();
    function
}

fn set_memory_back() -> Function {
    let mut function = Function::new([]);
    let mut code = function.instructions();
    for stretch in 0..STRETCHES as u32 {
        let (start, length) = (2 * stretch, 2 * stretch + 1);
        // The segment has the memory's bytes at the same places.
        code.local_get(start).local_get(start).local_get(length).memory_init(0, 0);
    }
    code.end();
    function
}

fn set_rest_back(parts: &Parts) -> Function {
    let mut function = Function::new([(1, ValType::I32)]);
    let mut code = function.instructions();
    for (at, global) in (0..).zip(&parts.globals) {
        global.value.push(&mut code);
        code.global_set(at);
    }
    order_free_handles(&mut code);
    let pages = parts.image.pages();
    code.memory_size(0).i32_const(pages).i32_eq().i32_const(pages).i32_mul().end();
    function
}

/// Takes as many handles as an instance may have held, and drops them from the last to the first. The handle that was
/// dropped last is the next one, so that they come in the order of a new instance; what was never taken is in it still.
fn order_free_handles(code: &mut InstructionSink<'_>) {
    let (most, at) = (0, 1);
    code.block(BlockType::Empty).loop_(BlockType::Empty);
    code.local_get(at).local_get(most).i32_eq().br_if(1);
    code.i32_const(0).call(NEW).drop();
    code.local_get(at).i32_const(1).i32_add().local_set(at).br(0).end().end();
    code.block(BlockType::Empty).loop_(BlockType::Empty);
    code.local_get(at).i32_eqz().br_if(1);
    code.local_get(at).call(DROP);
    code.local_get(at).i32_const(1).i32_sub().local_set(at).br(0).end().end();
}
