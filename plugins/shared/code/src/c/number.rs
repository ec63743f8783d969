//! Numbers, compared as C compares them: both are converted to their common type.

/// The types that numbers have in a comparison. The later one of two is their common type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Type {
    Int,
    Unsigned,
    Long,
    UnsignedLong,
    Float,
    Double,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Value {
    Whole(i128),
    Real(f64),
}

/// A number with its type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Number {
    of: Type,
    value: Value,
}

impl Number {
    /// A whole number, which is within its type.
    pub(crate) fn whole(of: Type, value: i128) -> Self {
        Self { of, value: Value::Whole(value) }
    }

    pub(crate) fn double(value: f64) -> Self {
        Self { of: Type::Double, value: Value::Real(value) }
    }

    pub(crate) fn float(value: f32) -> Self {
        Self { of: Type::Float, value: Value::Real(value.into()) }
    }

    /// Whether `==` of C holds.
    pub(crate) fn equals(self, other: Self) -> bool {
        let common = self.of.max(other.of);
        match (self.converted(common), other.converted(common)) {
            (Value::Whole(a), Value::Whole(b)) => a == b,
            (a, b) => real(a) == real(b),
        }
    }

    pub(crate) fn negated(self) -> Self {
        match self.value {
            Value::Whole(value) => Self { of: self.of, value: wrapped(self.of, -value) },
            Value::Real(value) => Self { of: self.of, value: Value::Real(-value) },
        }
    }

    /// What an operator of two literals gives; `None` where C defines nothing.
    pub(crate) fn computed(self, sign: &str, other: Self) -> Option<Self> {
        let of = self.of.max(other.of);
        let value = match (self.converted(of), other.converted(of)) {
            (Value::Whole(a), Value::Whole(b)) => {
                let value = match sign {
                    "+" => a.checked_add(b),
                    "-" => a.checked_sub(b),
                    "*" => a.checked_mul(b),
                    "/" => a.checked_div(b),
                    "%" => a.checked_rem(b),
                    _ => None,
                };
                let (least, most) = match of {
                    Type::Int => (i32::MIN.into(), i32::MAX.into()),
                    Type::Long => (i64::MIN.into(), i64::MAX.into()),
                    _ => (i128::MIN, i128::MAX),
                };
                wrapped(of, value.filter(|value| (least..=most).contains(value))?)
            }
            (a, b) => {
                let (a, b) = (real(a), real(b));
                let value = match sign {
                    "+" => a + b,
                    "-" => a - b,
                    "*" => a * b,
                    "/" => a / b,
                    _ => return None,
                };
                Value::Real(if of == Type::Float { f64::from(value as f32) } else { value })
            }
        };
        Some(Self { of, value })
    }

    pub(crate) fn real(self) -> f64 {
        real(self.value)
    }

    /// Whether it is 0 or 1, as the result of a comparison is.
    pub(crate) fn is_truth(self) -> bool {
        [0.0, 1.0].contains(&self.real())
    }

    fn converted(self, to: Type) -> Value {
        match (self.value, to) {
            (Value::Whole(value), Type::Float) => Value::Real(f64::from(value as f32)),
            (Value::Whole(value), Type::Double) => Value::Real(value as f64),
            (Value::Whole(value), _) => wrapped(to, value),
            (real, _) => real,
        }
    }
}

impl std::fmt::Display for Number {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.value {
            Value::Whole(value) => value.fmt(formatter),
            Value::Real(value) => write!(formatter, "{value:?}"),
        }
    }
}

fn wrapped(to: Type, value: i128) -> Value {
    Value::Whole(match to {
        Type::Unsigned => value & i128::from(u32::MAX),
        Type::UnsignedLong => value & i128::from(u64::MAX),
        _ => value,
    })
}

fn real(value: Value) -> f64 {
    match value {
        Value::Whole(value) => value as f64,
        Value::Real(value) => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_equal_as_in_c() {
        use Type::{Int, Long, Unsigned, UnsignedLong};
        let whole = Number::whole;
        let most: i128 = u64::MAX.into();
        for (a, b) in [
            (whole(Int, -1), whole(Unsigned, 4_294_967_295)),
            (whole(Int, -1), whole(UnsignedLong, most)),
            (whole(Long, -1), whole(UnsignedLong, most)),
            (whole(Unsigned, 5), whole(Long, 5)),
            (whole(Int, 2), Number::double(2.0)),
            (whole(Int, 16_777_217), Number::float(16_777_216.0)),
            (Number::float(0.5), Number::double(0.5)),
            (Number::double(0.0), Number::double(-0.0)),
        ] {
            assert!(a.equals(b) && b.equals(a), "{a:?} {b:?}");
        }
        for (a, b) in [
            (whole(Long, -1), whole(Unsigned, 4_294_967_295)),
            (whole(Int, -1), whole(Long, 4_294_967_295)),
            (whole(Unsigned, 4_294_967_295), whole(UnsignedLong, most)),
            (whole(Int, 16_777_217), Number::double(16_777_216.0)),
            (whole(Long, 9_007_199_254_740_993), whole(Long, 9_007_199_254_740_992)),
            (Number::float(0.1), Number::double(0.1)),
            (Number::double(f64::NAN), Number::double(f64::NAN)),
        ] {
            assert!(!a.equals(b) && !b.equals(a), "{a:?} {b:?}");
        }
        assert_eq!(whole(Int, 7).computed("/", whole(Int, -2)), Some(whole(Int, -3)));
        assert_eq!(whole(Unsigned, 1).computed("-", whole(Int, 2)), Some(whole(Unsigned, 4_294_967_295)));
        assert_eq!(whole(Int, 2).computed("/", Number::double(4.0)), Some(Number::double(0.5)));
        assert_eq!(Number::float(0.1).computed("+", Number::float(0.2)), Some(Number::float(0.1 + 0.2)));
        assert_eq!(whole(Int, 2_147_483_647).computed("+", whole(Int, 1)), None);
        assert_eq!(whole(Int, 1).computed("/", whole(Int, 0)), None);
        assert_eq!(whole(Unsigned, 1).negated(), whole(Unsigned, 4_294_967_295));
        assert_eq!(whole(Int, 1).negated(), whole(Int, -1));
    }
}
