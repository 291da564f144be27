//! Writes the table of sites as comma-separated values, with the functions of each call stack.

use crate::output::file::Trouble;
use mallard_trace::tables::schema::SITES;
use mallard_trace::tables::{Column, Values};
use mallard_trace::Trace;
use std::io::{self, Write};

/// Writes a line for each site. The line has the columns of the table `sites`, and the functions of
/// the site's call stack, the innermost first.
pub fn write(trace: &Trace, to: &mut dyn Write) -> Result<(), Trouble> {
    let (table, stacks) = (trace.table(&SITES)?, trace.stacks()?);
    let mut out = csv::Writer::from_writer(to);
    let names = SITES.fields.iter().map(|field| field.name).chain(["functions"]);
    out.write_record(names).map_err(of_the_system)?;
    for group in table.groups() {
        let columns = SITES.fields.iter().map(|field| table.group_column(group, field.name));
        let columns = columns.collect::<Result<Vec<Column>, _>>()?;
        let sites = columns[0].to_i64().unwrap_or_default();
        let mut cells: Vec<_> = columns.iter().map(cells).collect();
        for site in sites {
            let functions = stacks.functions(site as i32);
            let functions: Vec<&str> = functions.iter().map(|frame| frame.function).collect();
            let line = cells.iter_mut().map(|column| column.next().unwrap_or_default());
            out.write_record(line.chain([functions.join(" < ")])).map_err(of_the_system)?;
        }
    }
    Ok(out.flush()?)
}

/// Returns the cells of a column as text. A missing value gives an empty cell.
fn cells(column: &Column) -> Box<dyn Iterator<Item = String> + '_> {
    let mut values: Box<dyn Iterator<Item = String> + '_> = match &column.values {
        Values::I32(values) => Box::new(values.iter().map(i32::to_string)),
        Values::I64(values) => Box::new(values.iter().map(i64::to_string)),
        Values::F64(values) => Box::new(values.iter().map(f64::to_string)),
        Values::Bool(values) => Box::new(values.iter().map(bool::to_string)),
        Values::Text(values) => {
            Box::new(values.iter().map(|text| String::from_utf8_lossy(text.data()).into_owned()))
        }
    };
    match &column.present {
        None => values,
        Some(present) => Box::new(present.iter().map(move |&is_there| {
            let value = if is_there == 0 { None } else { values.next() };
            value.unwrap_or_default()
        })),
    }
}

fn of_the_system(error: csv::Error) -> Trouble {
    Trouble::System(match error.into_kind() {
        csv::ErrorKind::Io(error) => error,
        kind => io::Error::other(format!("{kind:?}")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_disk_during_a_csv_export_is_reported_as_a_full_disk() {
        let error = csv::Error::from(io::Error::from(io::ErrorKind::StorageFull));
        let Trouble::System(error) = of_the_system(error) else { panic!("not of the system") };
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
