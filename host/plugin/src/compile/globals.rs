//! Globals of modules: the numbers at which they start, and the names under which
//! they are exported to the host.

use wasm_encoder::{ConstExpr, InstructionSink, ValType};
use wasmparser::Operator;

/// The value of a global; floating-point numbers by their bits.
#[derive(Clone, Copy)]
pub(super) enum Number {
    I32(i32),
    I64(i64),
    F32(u32),
    F64(u64),
}

impl Number {
    /// The number that an expression is; `None` if it is something else.
    pub(super) fn of(value: &wasmparser::ConstExpr<'_>) -> Result<Option<Self>, wasmparser::Error> {
        Ok(match only_operator(value)? {
            Some(Operator::I32Const { value }) => Some(Self::I32(value)),
            Some(Operator::I64Const { value }) => Some(Self::I64(value)),
            Some(Operator::F32Const { value }) => Some(Self::F32(value.bits())),
            Some(Operator::F64Const { value }) => Some(Self::F64(value.bits())),
            _ => None,
        })
    }

    pub(super) fn val_type(self) -> ValType {
        match self {
            Self::I32(_) => ValType::I32,
            Self::I64(_) => ValType::I64,
            Self::F32(_) => ValType::F32,
            Self::F64(_) => ValType::F64,
        }
    }

    /// The expression that is zero in this number's type.
    pub(super) fn zero(self) -> ConstExpr {
        match self {
            Self::I32(_) => ConstExpr::i32_const(0),
            Self::I64(_) => ConstExpr::i64_const(0),
            Self::F32(_) => ConstExpr::f32_const(0.0.into()),
            Self::F64(_) => ConstExpr::f64_const(0.0.into()),
        }
    }

    /// Adds the instruction that pushes the number.
    pub(super) fn push(self, code: &mut InstructionSink<'_>) {
        match self {
            Self::I32(value) => code.i32_const(value),
            Self::I64(value) => code.i64_const(value),
            Self::F32(bits) => code.f32_const(f32::from_bits(bits).into()),
            Self::F64(bits) => code.f64_const(f64::from_bits(bits).into()),
        };
    }
}

/// The name under which a module exports a global that changes, by its index there. A module has these exports before and
/// after its snapshot, so that its code is the same.
pub(super) fn exported_name(index: u32) -> String {
    format!("gavel-global-{index}")
}

/// The operator of an expression that has one.
pub(super) fn only_operator<'a>(
    expression: &wasmparser::ConstExpr<'a>,
) -> Result<Option<Operator<'a>>, wasmparser::Error> {
    let mut operators = expression.get_operators_reader();
    let first = operators.read()?;
    Ok(matches!(operators.read()?, Operator::End).then_some(first))
}
