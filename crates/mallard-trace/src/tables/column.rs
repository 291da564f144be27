//! Stores the values of one column of a row group.

use parquet::data_type::ByteArray;

/// The values of a column that are not null.
#[derive(Debug, Clone)]
pub enum Values {
    /// Values of the kinds `I8`, `I16` and `I32`.
    I32(Vec<i32>),
    /// Values of the kind `I64`.
    I64(Vec<i64>),
    /// Values of the kind `F64`.
    F64(Vec<f64>),
    /// Values of the kind `Text`.
    Text(Vec<ByteArray>),
    /// Values of the kind `Bool`.
    Bool(Vec<bool>),
}

/// A column, with nulls if its field is optional.
#[derive(Debug, Clone)]
pub struct Column {
    /// The values that are not null.
    pub values: Values,
    /// For an optional field, 1 for each row with a value and 0 for each row that is null. `None`
    /// for other fields.
    pub present: Option<Vec<i16>>,
}

impl Column {
    /// Returns the number of rows, including rows without a value.
    pub fn rows(&self) -> usize {
        match (&self.present, &self.values) {
            (Some(present), _) => present.len(),
            (None, Values::I32(values)) => values.len(),
            (None, Values::I64(values)) => values.len(),
            (None, Values::F64(values)) => values.len(),
            (None, Values::Text(values)) => values.len(),
            (None, Values::Bool(values)) => values.len(),
        }
    }

    /// Returns the numbers of a column of integers, or `None` if the column has another type. Rows
    /// without a value become -1.
    pub fn to_i64(&self) -> Option<Vec<i64>> {
        match &self.values {
            Values::I32(values) => Some(self.spread(values.iter().map(|&v| i64::from(v)), -1)),
            Values::I64(values) => Some(self.spread(values.iter().copied(), -1)),
            _ => None,
        }
    }

    /// Returns the values of a column of doubles, or `None` if the column has another type.
    pub fn to_f64(&self) -> Option<Vec<Option<f64>>> {
        match &self.values {
            Values::F64(values) => Some(self.spread(values.iter().map(|&v| Some(v)), None)),
            _ => None,
        }
    }

    /// Returns the strings of a column of strings, or `None` if the column has another type. Rows
    /// without a value become empty strings.
    pub fn to_text(&self) -> Option<Vec<String>> {
        let text = |v: &ByteArray| String::from_utf8_lossy(v.data()).into_owned();
        match &self.values {
            Values::Text(values) => Some(self.spread(values.iter().map(text), String::new())),
            _ => None,
        }
    }

    /// Replaces each path by its file name.
    pub(crate) fn without_folders(self) -> Column {
        let values = match self.values {
            Values::Text(paths) => Values::Text(paths.iter().map(without_folder).collect()),
            other => other,
        };
        Column { values, ..self }
    }

    /// Inserts the value `none` for each row without a value.
    fn spread<T: Clone>(&self, values: impl Iterator<Item = T>, none: T) -> Vec<T> {
        let mut values = values;
        match &self.present {
            None => values.collect(),
            Some(present) => present
                .iter()
                .map(|&level| if level == 0 { None } else { values.next() })
                .map(|value| value.unwrap_or_else(|| none.clone()))
                .collect(),
        }
    }

    /// Makes a column of strings without nulls.
    pub fn text<'a>(values: impl IntoIterator<Item = &'a str>) -> Self {
        Column { values: Values::Text(values.into_iter().map(bytes).collect()), present: None }
    }

    /// Makes a column of strings with nulls.
    pub fn text_or_null<'a>(values: impl IntoIterator<Item = Option<&'a str>>) -> Self {
        let (values, present) = split(values.into_iter().map(|text| text.map(bytes)));
        Column { values: Values::Text(values), present: Some(present) }
    }
}

/// Declares functions that make a column from numbers of one type.
macro_rules! of_numbers {
    ($($type:ident $kind:ident $or_null:ident,)*) => {
        impl Column {
            $(
                /// Makes a column of numbers without nulls.
                pub fn $type(values: impl IntoIterator<Item = $type>) -> Self {
                    Column { values: Values::$kind(values.into_iter().collect()), present: None }
                }

                /// Makes a column of numbers with nulls.
                pub fn $or_null(values: impl IntoIterator<Item = Option<$type>>) -> Self {
                    let (values, present) = split(values);
                    Column { values: Values::$kind(values), present: Some(present) }
                }
            )*
        }
    };
}

of_numbers! { i32 I32 i32_or_null, i64 I64 i64_or_null, f64 F64 f64_or_null, }

fn bytes(text: &str) -> ByteArray {
    ByteArray::from(text.as_bytes().to_vec())
}

fn without_folder(path: &ByteArray) -> ByteArray {
    let name = path.data().rsplit(|&byte| byte == b'/').next();
    ByteArray::from(name.unwrap_or_default().to_vec())
}

fn split<T>(values: impl IntoIterator<Item = Option<T>>) -> (Vec<T>, Vec<i16>) {
    let mut some = Vec::new();
    let mut present = Vec::new();
    for value in values {
        present.push(i16::from(value.is_some()));
        some.extend(value);
    }
    (some, present)
}
