//! The messages of a pprof profile, with the numbers of their fields. A string is stored as an
//! index in `Profile::strings`, whose first string is empty. IDs of mappings, locations and
//! functions begin with 1.
#![allow(missing_docs)] // The names are those of pprof's format.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct Profile {
    /// The type of each value of a sample.
    #[prost(message, repeated, tag = "1")]
    pub sample_types: Vec<ValueType>,
    #[prost(message, repeated, tag = "2")]
    pub samples: Vec<Sample>,
    #[prost(message, repeated, tag = "3")]
    pub mappings: Vec<Mapping>,
    #[prost(message, repeated, tag = "4")]
    pub locations: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub functions: Vec<Function>,
    #[prost(string, repeated, tag = "6")]
    pub strings: Vec<String>,
    /// The start of the profile, in nanoseconds since 1970.
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<ValueType>,
    #[prost(int64, tag = "12")]
    pub period: i64,
    #[prost(int64, repeated, tag = "13")]
    pub comments: Vec<i64>,
    /// The name of the type that viewers show first.
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct ValueType {
    #[prost(int64, tag = "1")]
    pub name: i64,
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Sample {
    /// The locations, the innermost first.
    #[prost(uint64, repeated, tag = "1")]
    pub locations: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub values: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Mapping {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub start: u64,
    #[prost(uint64, tag = "3")]
    pub end: u64,
    #[prost(uint64, tag = "4")]
    pub file_offset: u64,
    #[prost(int64, tag = "5")]
    pub file: i64,
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    /// Whether the profile contains functions, so that viewers need not look them up.
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    #[prost(bool, tag = "8")]
    pub has_files: bool,
    #[prost(bool, tag = "9")]
    pub has_lines: bool,
    #[prost(bool, tag = "10")]
    pub has_inlined: bool,
}

#[derive(Clone, PartialEq, Message)]
pub struct Location {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub mapping: u64,
    #[prost(uint64, tag = "3")]
    pub address: u64,
    /// The functions at this address, the innermost first. Each was inlined into the next one.
    #[prost(message, repeated, tag = "4")]
    pub lines: Vec<Line>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Line {
    #[prost(uint64, tag = "1")]
    pub function: u64,
    #[prost(int64, tag = "2")]
    pub line: i64,
}

#[derive(Clone, PartialEq, Message)]
pub struct Function {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(int64, tag = "2")]
    pub name: i64,
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    #[prost(int64, tag = "4")]
    pub file: i64,
}
