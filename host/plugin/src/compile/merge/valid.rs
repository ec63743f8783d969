//! What the validator finds before and after a merge.

use super::not_merged::NotMerged;
use crate::compile::check;
use wasmparser::types::Types;
use wasmparser::{FuncValidatorAllocations, Parser, ValidPayload, Validator, WasmFeatures};

/// What components of the languages' tools use; wasmtime supports all of it. A
/// component that uses more is not merged.
const FEATURES: WasmFeatures = WasmFeatures::WASM2
    .union(WasmFeatures::COMPONENT_MODEL)
    .union(WasmFeatures::EXTENDED_CONST)
    .union(WasmFeatures::MULTI_MEMORY)
    .union(WasmFeatures::TAIL_CALL)
    .difference(WasmFeatures::GC_TYPES);

/// What a merged component uses besides: a constant expression may read a global
/// of its own module, which was another module's.
const MERGED_FEATURES: WasmFeatures =
    FEATURES.union(WasmFeatures::FUNCTION_REFERENCES).union(WasmFeatures::GC).difference(WasmFeatures::GC_TYPES);

/// Refuses an invalid component: its parts could be valid once they are merged,
/// and the compiler sees only the result.
pub(super) fn validate_built(component: &[u8]) -> Result<(), NotMerged> {
    validate(component, FEATURES)?;
    Ok(())
}

/// The items of a component without features that the languages' tools do not use; `None` if it is something else.
pub(super) fn items(component: &[u8]) -> Result<Option<Types>, wasmparser::Error> {
    validate(component, MERGED_FEATURES)
}

/// Validates a component or a module but for the bodies of its functions.
pub(super) fn validate_items(wasm: &[u8]) -> Result<(), wasmparser::Error> {
    let mut validator = Validator::new_with_features(MERGED_FEATURES);
    let mut parser = Parser::new(0);
    parser.set_features(MERGED_FEATURES);
    for payload in parser.parse_all(wasm) {
        validator.payload(&payload?)?;
    }
    Ok(())
}

fn validate(component: &[u8], features: WasmFeatures) -> Result<Option<Types>, wasmparser::Error> {
    let mut validator = Validator::new_with_features(features);
    let mut parser = Parser::new(0);
    parser.set_features(features);
    let mut allocations = FuncValidatorAllocations::default();
    let mut types = None;
    for payload in parser.parse_all(component) {
        // Each body at once, since a list of all bodies is larger than the component.
        match validator.payload(&payload?)? {
            ValidPayload::Func(function, body) => {
                let mut function = function.into_validator(allocations);
                function.validate(&body)?;
                allocations = function.into_allocations();
            }
            ValidPayload::End(found) => types = Some(found),
            _ => {}
        }
    }
    Ok(types)
}

/// Refuses a result that the compiler would refuse, or that costs it too much:
/// the modules together can exceed a limit that each one keeps.
pub(super) fn validate_merged(component: &[u8]) -> Result<(), NotMerged> {
    validate(component, MERGED_FEATURES).map_err(NotMerged::InvalidResult)?;
    // A merged component needs no limit of its own to its size.
    check::check(component, usize::MAX).map_err(NotMerged::CostlyResult)
}
