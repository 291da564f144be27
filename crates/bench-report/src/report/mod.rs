//! `./x bench report`: writes benchmark results as a Markdown page and an HTML page.

mod answer;
mod calibration;
mod charts;
mod markdown;
mod pack;
mod page;
mod sections;
mod short;

use crate::rows::experiment::Machine;
use crate::rows::machines::Names;
use crate::rows::published::Published;
use crate::rows::row::Rows;
use crate::rows::{history, locate};
use charts::Charts;
use mallard_measure::error::Failure;
use mallard_measure::output::terminal;
use mallard_page::chart_js;
use page::First;
use short::mallocs::Mallocs;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Writes docs/performance.md and its chart, docs/calibration.md, and pages with all figures
#[derive(clap::Args)]
pub struct Report {
    /// Files or folders of rows [default: results/]
    rows: Vec<PathBuf>,
    /// Folder for performance.html and performance.md, which have all figures [default: build]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

impl Report {
    pub fn run(self) -> Result<ExitCode, Failure> {
        let root = locate::root()?;
        let mut rows = locate::committed_rows(&root, &self.rows)?;
        let published = locate::published(&root)?;
        let count = rows.all.len();
        if count == 0 {
            return Err(Failure::new(
                "there are no rows",
                "nothing was written",
                "./x bench SUITE --json > results/MACHINE/SUITE.jsonl",
            ));
        }
        let names = locate::names(&root)?;
        let mut calibrated = rows.take_suite(calibration::SUITE);
        calibrated.all.extend(rows.all.iter().filter(|r| calibration::is_of_change(r)).cloned());
        let calibrated = machines(&root, &calibrated, &names);
        let page = root.join("docs/calibration.md");
        write(&page, &calibration::render(&calibrated, &published.reasons))?;
        let mut shown = vec![page];
        if !rows.all.is_empty() {
            shown.extend(self.performance(
                &root,
                &machines(&root, &rows, &names),
                &calibrated,
                &published,
            )?);
        }
        let shown: Vec<_> = shown.iter().map(|page| page.display().to_string()).collect();
        terminal::say(&format!("{count} rows: {}\n", shown.join(", ")))?;
        Ok(ExitCode::SUCCESS)
    }

    /// Writes the pages about all suites except calibration, and returns their paths.
    fn performance(
        &self,
        root: &Path,
        machines: &[Machine],
        calibrated: &[Machine],
        published: &Published,
    ) -> Result<Vec<PathBuf>, Failure> {
        let charts = Charts::of(machines, calibrated);
        let mut all: Vec<_> = machines.iter().map(|m| (m, sections::of(m, published))).collect();
        for (_, sections) in all.iter_mut().skip(1) {
            sections.retain(|s| s.measured); // the first machine also shows sections without figures
        }
        for (index, (_, sections)) in all.iter_mut().enumerate() {
            if charts.scatters.iter().any(|scatter| scatter.machine == index) {
                sections.push(sections::calibration());
            }
        }
        let mallocs = Mallocs::of(machines);
        let first = First {
            sentences: short::sentences(machines, &mallocs),
            versus: short::versus::of(machines, &mallocs),
        };
        let page = page::render(&first, &all, &charts, chart_js());

        let out = self.out.clone().unwrap_or_else(|| root.join("build"));
        let mut pages = vec![
            (root.join("docs/performance.md"), short::render(machines, &mallocs)),
            (out.join("performance.html"), page),
            (out.join("performance.md"), markdown::render(&sections::lead(machines), &all)),
        ];
        let chart = short::chart::draw(machines, &mallocs);
        pages.extend(chart.map(|svg| (root.join("docs/images/mallocs.svg"), svg)));
        for (path, text) in &pages {
            write(path, text)?;
        }
        Ok(pages.into_iter().map(|(path, _)| path).collect())
    }
}

/// Groups results by machine. Sets the common names of the machines, and the commits that the
/// repository does not have.
fn machines(root: &Path, rows: &Rows, names: &Names) -> Vec<Machine> {
    let mut machines = Machine::all(rows);
    for machine in &mut machines {
        machine.call(names);
        let named = machine.experiments.iter().flat_map(|e| &e.rows).map(|r| &*r.commit);
        machine.lost_commits = history::unknown(root, named);
    }
    machines
}

/// Writes a file atomically, so that a reader sees either the old content or the new one.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |e: std::io::Error| {
        let before =
            if path.exists() { "the page from before is as it was" } else { "there is no page" };
        Failure::new(
            format!("cannot write {}: {}", path.display(), e.to_string().to_lowercase()),
            before,
            "./x bench report --out DIR, where there is room",
        )
    };
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(failed)?;
    let mut file = tempfile::NamedTempFile::new_in(folder).map_err(failed)?;
    file.write_all(text.as_bytes()).map_err(failed)?;
    file.as_file().sync_all().map_err(failed)?;
    // A temporary file is private to its owner, but everyone may read the page.
    readable(file.path()).map_err(failed)?;
    file.persist(path).map_err(|e| failed(e.error))?;
    Ok(())
}

fn readable(path: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o644))
}
