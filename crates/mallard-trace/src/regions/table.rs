//! Writes the table `regions` into the directory of the trace when the table is first needed.

use super::region::{Limits, Quantiles, Region, Regions};
use super::result::find;
use crate::error::{Error, ErrorKind, Result};
use crate::tables::schema::REGIONS;
use crate::tables::{Column, Table, Tables};
use crate::trace::Trace;
use std::path::{Path, PathBuf};

/// The file name of the table.
const FILE: &str = "regions.parquet";

/// Returns the file of the table `regions` of a trace. If there is no such file, finds the regions
/// and writes the file into the directory of the trace, or into `scratch` if that directory is not
/// writable.
pub fn file(trace: &Trace, scratch: &Path) -> Result<PathBuf> {
    for folder in [trace.folder(), scratch] {
        // A file of another version has other columns and is replaced.
        if Table::open(folder, &REGIONS).is_ok_and(|table| table.paths().next().is_some()) {
            return Ok(folder.join(FILE));
        }
    }
    let regions = find(trace, Limits::default())?;
    keep(&regions, trace.folder()).or_else(|_| keep(&regions, scratch))
}

/// Writes the table `regions` into a directory. Replaces an existing file atomically, so that a
/// reader sees either the old rows or the new rows.
pub fn keep(regions: &Regions, folder: &Path) -> Result<PathBuf> {
    let failed = |error: std::io::Error| {
        Error::new(
            ErrorKind::System,
            format!("cannot save the regions in {}: {error}", folder.display()),
            "the trace is unchanged",
            "make room on the disk, or copy the trace to a directory in which you can write",
        )
    };
    let beside = tempfile::Builder::new().prefix(".regions.").tempdir_in(folder).map_err(failed)?;
    let mut tables = Tables::new(beside.path());
    tables.write(&REGIONS, columns(&regions.all));
    tables.finish()?;
    let to = folder.join(FILE);
    std::fs::rename(beside.path().join(FILE), &to).map_err(failed)?;
    Ok(to)
}

/// Makes the columns of the table.
fn columns(all: &[Region]) -> Vec<Column> {
    let count = |of: fn(&Region) -> u64| {
        Column::i64(all.iter().map(|region| i64::try_from(of(region)).unwrap_or(i64::MAX)))
    };
    let number = |of: fn(&Region) -> f64| Column::f64(all.iter().map(of));
    let text = |of: fn(&Region) -> &str| Column::text(all.iter().map(of));
    let small = |of: fn(&Region) -> u32| Column::i32(all.iter().map(|region| of(region) as i32));
    let mut columns = vec![
        text(|region| &region.function),
        text(|region| &region.shown),
        Column::text_or_null(all.iter().map(|region| region.file.as_deref())),
        Column::i32_or_null(all.iter().map(|region| region.line.map(|line| line as i32))),
        text(|region| &region.module),
        small(|region| region.node),
        text(|region| region.ends.word()),
        count(|region| region.instances),
        count(|region| region.unfinished),
        small(|region| region.threads),
        count(|region| region.inputs),
        count(|region| region.blocks),
        count(|region| region.bytes),
        count(|region| region.calls),
        number(|region| region.call_ns),
        Column::f64_or_null(all.iter().map(|region| region.cpu_ns)),
    ];
    let spreads: [fn(&Region) -> Quantiles; 3] =
        [|region| region.duration_ns, |region| region.peak, |region| region.total];
    spreads.iter().for_each(|&of| columns.extend(quantiles(all, of)));
    let site = || all.iter().map(|region| region.escape_sites.first());
    columns.extend([
        number(|region| region.utilisation),
        number(|region| region.variation_bits),
        small(|region| region.sizes),
        number(|region| region.one_size_share),
        count(|region| region.escapes),
        count(|region| region.escape_bytes),
        Column::text_or_null(site().map(|site| site.map(|site| site.function.as_str()))),
        Column::i32_or_null(site().map(|site| site.map(|site| site.node as i32))),
        count(|region| region.foreign_escapes),
        count(|region| region.foreign_frees),
        number(|region| region.teardown_ns),
        count(|region| region.final_frees),
    ]);
    columns
}

/// Makes the columns for the median, the 90th percentile and the maximum of a figure.
fn quantiles(all: &[Region], of: fn(&Region) -> Quantiles) -> [Column; 3] {
    let which: [fn(Quantiles) -> f64; 3] = [|q| q.p50, |q| q.p90, |q| q.max];
    which.map(|which| Column::f64(all.iter().map(|region| which(of(region)))))
}
