//! A value of Python as JSON.

use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyMapping, PyString, PyTuple};
use serde::ser::{Error, SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;

/// The most levels of lists and dicts, as in a row of a file.
const MOST_LEVELS: usize = 126;

/// A value of Python, written as JSON. Numbers of NumPy, arrays and tensors are written as the numbers and lists that
/// their `tolist` gives. NaN is null, as in a row of Parquet.
pub struct PythonValue<'a, 'py> {
    value: &'a Bound<'py, PyAny>,
    levels: usize,
}

impl<'a, 'py> PythonValue<'a, 'py> {
    pub fn new(value: &'a Bound<'py, PyAny>) -> Self {
        Self { value, levels: MOST_LEVELS }
    }

    /// A value within this one.
    fn within<'b, E: Error>(&self, value: &'b Bound<'py, PyAny>) -> Result<PythonValue<'b, 'py>, E> {
        match self.levels.checked_sub(1) {
            Some(levels) => Ok(PythonValue { value, levels }),
            None => Err(E::custom(format!("it has more than {MOST_LEVELS} levels of lists and dicts"))),
        }
    }

    fn list<S: Serializer>(
        &self,
        serializer: S,
        items: impl ExactSizeIterator<Item = Bound<'py, PyAny>>,
    ) -> Result<S::Ok, S::Error> {
        let mut list = serializer.serialize_seq(Some(items.len()))?;
        for item in items {
            list.serialize_element(&self.within(&item)?)?;
        }
        list.end()
    }

    fn map<S: Serializer>(
        &self,
        serializer: S,
        items: impl ExactSizeIterator<Item = (Bound<'py, PyAny>, Bound<'py, PyAny>)>,
    ) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(items.len()))?;
        for (key, value) in items {
            let Ok(key) = key.cast::<PyString>() else {
                return Err(S::Error::custom(format!("a key of a dict is of type {}, not str", type_name(&key))));
            };
            map.serialize_entry(&*key.to_cow().map_err(S::Error::custom)?, &self.within(&value)?)?;
        }
        map.end()
    }

    /// An integer that may have more than 64 bits.
    fn integer<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Ok(number) = self.value.extract::<i64>() {
            return serializer.serialize_i64(number);
        }
        // The value's own `str` may be its name, as for a member of an enumeration.
        let digits = self.value.call_method0("__index__").and_then(|number| number.str()).map_err(S::Error::custom)?;
        RawValue::from_string(digits.to_string()).map_err(S::Error::custom)?.serialize(serializer)
    }

    fn other<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Ok(mapping) = self.value.cast::<PyMapping>() {
            let items = mapping.items().map_err(S::Error::custom)?;
            let pair = |item: Bound<'py, PyAny>| item.extract::<(Bound<'py, PyAny>, Bound<'py, PyAny>)>();
            let pairs = items.iter().map(pair).collect::<PyResult<Vec<_>>>().map_err(S::Error::custom)?;
            return self.map(serializer, pairs.into_iter());
        }
        match self.value.call_method0("tolist") {
            Ok(plain) => self.within(&plain)?.serialize(serializer),
            Err(_) => Err(S::Error::custom(format!("a value of type {} is not JSON", type_name(self.value)))),
        }
    }
}

impl Serialize for PythonValue<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = self.value;
        if let Ok(text) = value.cast::<PyString>() {
            serializer.serialize_str(&text.to_cow().map_err(S::Error::custom)?)
        } else if value.is_none() {
            serializer.serialize_unit()
        } else if let Ok(truth) = value.cast::<PyBool>() {
            serializer.serialize_bool(truth.is_true())
        } else if value.is_instance_of::<PyInt>() {
            self.integer(serializer)
        } else if let Ok(number) = value.cast::<PyFloat>() {
            serializer.serialize_f64(number.value())
        } else if let Ok(dict) = value.cast::<PyDict>() {
            self.map(serializer, dict.iter())
        } else if let Ok(list) = value.cast::<PyList>() {
            self.list(serializer, list.iter())
        } else if let Ok(tuple) = value.cast::<PyTuple>() {
            self.list(serializer, tuple.iter())
        } else {
            self.other(serializer)
        }
    }
}

/// The name of a value's type, such as `numpy.ndarray`.
pub fn type_name(value: &Bound<'_, PyAny>) -> String {
    value.get_type().fully_qualified_name().map_or_else(|_| "?".to_owned(), |name| name.to_string())
}
