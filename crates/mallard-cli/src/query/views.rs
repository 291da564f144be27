//! Makes the tables of a trace or of a fleet available as views of DuckDB.

use crate::export::fleet::{Fleet, Key};
use mallard_measure::error::status::UNREADABLE;
use mallard_measure::error::Failure;
use mallard_measure::output::progress::Work;
use mallard_measure::output::shell::quoted_path;
use mallard_trace::tables::schema::{ALL, REGIONS};
use mallard_trace::tables::{Kind, Schema, Style, Table, Tables};
use mallard_trace::Trace;
use std::path::{Path, PathBuf};

/// Views that are derived from tables, each with its name, the tables that it needs, and its query.
/// Spark can run the same queries.
const DERIVED: [(&str, &[&str], &str); 2] = [
    ("allocs", &["events"], include_str!("../../../../docs/examples/sql/views/allocs.sql")),
    (
        "functions",
        &["stacks", "frames"],
        include_str!("../../../../docs/examples/sql/views/functions.sql"),
    ),
];

/// The statements that make the views, and the directories that the views read.
pub struct Views {
    /// The statements, one for each view.
    pub statements: Vec<String>,
    names: Vec<&'static str>,
    /// The directories that contain all files of the views.
    pub folders: Vec<String>,
    /// The errors of corrupt tables. Corrupt tables have no views.
    pub damaged: Vec<Failure>,
}

impl Views {
    /// Makes views of the tables of a trace, and the derived views. Each table gets the columns
    /// `service`, `date` and `run`, as in a fleet, so that the same queries work for both. If there
    /// is a directory `copy`, a table that DuckDB before 2.0 cannot read is copied there, and the
    /// view reads the copy. `regions` is the file of the table of regions, if the query needs that
    /// table.
    pub fn of_trace(
        trace: &Trace,
        copy: Option<&Path>,
        regions: Option<mallard_trace::Result<PathBuf>>,
    ) -> Result<Views, Failure> {
        let name = trace.folder().file_stem().unwrap_or_default().to_string_lossy();
        let key = Key::of(trace.manifest(), &name);
        let keys = format!(
            "{} AS service, DATE {} AS date, {} AS run",
            quoted(&key.service),
            quoted(&key.date),
            quoted(&key.run)
        );
        let mut views = Views::new(text_of(trace.folder())?);
        for schema in ALL {
            let files = match files_of(trace, schema, copy) {
                Ok(files) => files,
                Err(failure) => {
                    views.damaged.push(failure);
                    continue;
                }
            };
            let files = files.iter().map(|path| text_of(path)).collect::<Result<Vec<_>, _>>()?;
            views.add(schema.name, &format!("SELECT *, {keys} FROM {}", rows(&files, schema)));
        }
        match regions.transpose() {
            Ok(None) => {}
            Ok(Some(file)) => {
                let rows = rows(&[text_of(&file)?], &REGIONS);
                views.add(REGIONS.name, &format!("SELECT *, {keys} FROM {rows}"));
                views.folders.extend(file.parent().map(text_of).transpose()?);
            }
            Err(error) => views.damaged.push(error.into()),
        }
        views.derive();
        views.folders.extend(copy.map(text_of).transpose()?);
        Ok(views)
    }

    /// Makes views of the tables of all runs of a fleet. A fleet already has the blocks as a table.
    pub fn of_fleet(fleet: &Fleet) -> Result<Views, Failure> {
        let folder = text_of(fleet.root())?;
        if folder.contains(['*', '?', '[']) {
            return Err(Failure::new(
                format!("DuckDB would read the name {folder} as a pattern"),
                "nothing was read",
                "give the fleet another path, without * ? and [",
            )
            .with_status(UNREADABLE));
        }
        let mut views = Views::new(folder.clone());
        for table in fleet.tables() {
            let files = quoted(&format!("{folder}/{table}/*/*/*/*.parquet"));
            let types = "{'service': VARCHAR, 'date': DATE, 'run': VARCHAR}";
            let options = format!("hive_partitioning = true, hive_types = {types}");
            views.add(table, &format!("SELECT * FROM read_parquet({files}, {options})"));
        }
        views.derive();
        Ok(views)
    }

    fn new(folder: String) -> Views {
        Views {
            statements: Vec::new(),
            names: Vec::new(),
            folders: vec![folder],
            damaged: Vec::new(),
        }
    }

    fn add(&mut self, name: &'static str, query: &str) {
        self.statements.push(format!("CREATE VIEW {name} AS {query};"));
        self.names.push(name);
    }

    /// Adds the derived views whose tables exist.
    fn derive(&mut self) {
        for (name, tables, query) in DERIVED {
            let has = |table: &&'static str| self.names.contains(table);
            if tables.iter().all(has) && !has(&name) {
                self.add(name, query);
            }
        }
    }
}

/// Returns the files of a table of a trace. Returns an error if the table is corrupt.
fn files_of(
    trace: &Trace,
    schema: &'static Schema,
    copy: Option<&Path>,
) -> Result<Vec<PathBuf>, Failure> {
    let table = trace.table(schema)?;
    let Some(folder) = copy.filter(|_| table.has_split_integers()) else {
        return Ok(table.paths().map(Path::to_path_buf).collect());
    };
    let work = Work::begin();
    work.say(&format!("a copy of {} for DuckDB before 2.0", schema.name));
    let mut tables = Tables::with_style(folder, Style::Scratch);
    let copied = trace.copy(schema, &mut tables);
    tables.finish().map_err(|error| no_copy(folder, error.what()))?;
    copied?;
    Ok(Table::open(folder, schema)?.paths().map(Path::to_path_buf).collect())
}

fn no_copy(folder: &Path, why: &str) -> Failure {
    Failure::new(
        format!("cannot copy a table for DuckDB before 2.0: {why}"),
        "no query was run",
        format!(
            "df -h {}; TMPDIR names another directory; DuckDB 2.0 needs no copy",
            quoted_path(folder)
        ),
    )
    .with_status(UNREADABLE)
}

/// Returns an SQL expression for the rows of a table. Files are listed one by one, so that DuckDB
/// does not treat their names as patterns.
fn rows(files: &[String], schema: &Schema) -> String {
    if !files.is_empty() {
        let files: Vec<String> = files.iter().map(|file| quoted(file)).collect();
        return format!("read_parquet([{}])", files.join(", "));
    }
    let columns = schema.fields.iter().map(|field| {
        let kind = match field.kind {
            Kind::I8 => "TINYINT",
            Kind::I16 => "SMALLINT",
            Kind::I32 => "INTEGER",
            Kind::I64 => "BIGINT",
            Kind::F64 => "DOUBLE",
            Kind::Text => "VARCHAR",
            Kind::Bool => "BOOLEAN",
        };
        format!("NULL::{kind} AS \"{}\"", field.name)
    });
    format!("(SELECT {} WHERE false)", columns.collect::<Vec<_>>().join(", "))
}

/// Returns the path without symbolic links, because DuckDB compares paths in this form.
fn text_of(path: &Path) -> Result<String, Failure> {
    let failed = |why: &str| {
        Failure::new(
            format!("DuckDB cannot read {}: {why}", path.display()),
            "nothing was read",
            "name the trace by another path: ln -s, mv",
        )
        .with_status(UNREADABLE)
    };
    let path = path.canonicalize().map_err(|error| failed(&error.to_string().to_lowercase()))?;
    path.into_os_string().into_string().map_err(|_| failed("its path is not UTF-8"))
}

/// Quotes a text as an SQL string.
pub fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
