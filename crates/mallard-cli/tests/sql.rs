//! Tests `mallard query` with DuckDB, over one trace and over a fleet.
//!
//! The tests need DuckDB, which MALLARD_DUCKDB names, and the recorder. One test needs Spark, for
//! which MALLARD_PYSPARK names a Python. `./x test --all` installs and builds them.

mod fleet;
mod query;
