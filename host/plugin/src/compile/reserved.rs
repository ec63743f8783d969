//! Names that the host keeps for what it adds to components.

use super::reset::{MEMORY, MEMORY_START, REST};
use super::split::is_code_name;
use wasmparser::{Parser, Payload};

/// What a component does with a reserved name: what it exports would be called in place of the host's function, and what
/// it imports would be its code. A component that is invalid is left to the compiler.
pub(super) fn false_name(component: &[u8]) -> Option<String> {
    let mut depth = 0;
    for payload in Parser::new(0).parse_all(component) {
        match payload.ok()? {
            Payload::Version { .. } => depth += 1,
            Payload::End(_) => depth -= 1,
            Payload::ComponentExportSection(exports) if depth == 1 => {
                let mut names = exports.into_iter().flatten().map(|export| export.name.name);
                if let Some(name) = names.find(|name| [MEMORY_START, MEMORY, REST].contains(name)) {
                    return Some(format!("it exports `{name}`, a name that the host keeps for itself"));
                }
            }
            Payload::ComponentImportSection(imports) if depth == 1 => {
                let mut names = imports.into_iter().flatten().map(|import| import.name.name);
                if let Some(name) = names.find(|name| is_code_name(name)) {
                    return Some(format!("it imports `{name}`, a name that the host keeps for itself"));
                }
            }
            _ => {}
        }
    }
    None
}
