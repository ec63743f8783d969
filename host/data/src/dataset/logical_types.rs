//! The types that columns are read as.
//!
//! Parquet has types that Arrow has only as extensions: JSON and UUID. A file that pyarrow wrote also names the
//! extensions; a file of another program, such as DuckDB, does not.
//!
//! Texts and bytes are views of their pages, so that rows with the same text of a dictionary share it.

use super::parquet_values::{JSON, UUID, with_extension};
use arrow_schema::{DataType, FieldRef, Schema};
use parquet::basic::{ConvertedType, LogicalType};
use parquet::schema::types::{ColumnDescPtr, SchemaDescriptor};
use std::slice::Iter;
use std::sync::Arc;

/// The schema of a file's rows, with the extension types of its columns.
pub(super) fn with_extensions(schema: &Schema, file: &SchemaDescriptor) -> Schema {
    let mut leaves = file.columns().iter();
    let fields: Vec<FieldRef> = schema.fields().iter().map(|field| marked(field, &mut leaves)).collect();
    Schema::new_with_metadata(fields, schema.metadata().clone())
}

/// The field with the extension types of its leaves, which Arrow and Parquet have in the same order.
fn marked(field: &FieldRef, leaves: &mut Iter<'_, ColumnDescPtr>) -> FieldRef {
    let kind = match field.data_type() {
        DataType::Struct(fields) => DataType::Struct(fields.iter().map(|field| marked(field, leaves)).collect()),
        DataType::List(item) => DataType::List(marked(item, leaves)),
        DataType::LargeList(item) => DataType::LargeList(marked(item, leaves)),
        DataType::ListView(item) => DataType::ListView(marked(item, leaves)),
        DataType::LargeListView(item) => DataType::LargeListView(marked(item, leaves)),
        DataType::FixedSizeList(item, length) => DataType::FixedSizeList(marked(item, leaves), *length),
        DataType::Map(entries, is_sorted) => DataType::Map(marked(entries, leaves), *is_sorted),
        leaf => {
            let viewed = field.as_ref().clone().with_data_type(viewed(leaf));
            let extension = leaves.next().and_then(|leaf| extension(leaf));
            return Arc::new(extension.map_or_else(|| viewed.clone(), |name| with_extension(&viewed, name)));
        }
    };
    Arc::new(field.as_ref().clone().with_data_type(kind))
}

/// The type of a column, with texts and bytes as views.
fn viewed(leaf: &DataType) -> DataType {
    match leaf {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        DataType::Dictionary(_, values) => match viewed(values) {
            views @ (DataType::Utf8View | DataType::BinaryView) => views,
            _ => leaf.clone(),
        },
        other => other.clone(),
    }
}

fn extension(leaf: &ColumnDescPtr) -> Option<&'static str> {
    match (leaf.logical_type_ref(), leaf.converted_type()) {
        (Some(LogicalType::Json), _) | (None, ConvertedType::JSON) => Some(JSON),
        (Some(LogicalType::Uuid), _) => Some(UUID),
        _ => None,
    }
}
