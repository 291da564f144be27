//! Draws docs/images/mallocs.svg, the chart of the README, which compares each malloc with glibc's,
//! in whole programs and in calls.

use super::losses::Groups;
use super::mallocs::{Mallocs, OURS};
use super::names::{from_to, known_as};
use crate::report::answer::mallocs::{CALLS, PROGRAMS_PEAK, PROGRAMS_TIME};
use crate::rows::experiment::{Kind, Machine};
use crate::tables::number;
use maud::{html, Markup, PreEscaped};

/// The style sheet of the chart. The chart has its own background, so that it is readable on any
/// page.
const STYLE: &str = "\
    text { font: 14px system-ui, 'DejaVu Sans', sans-serif; fill: #1b1f23; }\
    .back { fill: #fdfdfc; stroke: #d7dbdf; } .dim { fill: #57606a; } .note { fill: #57606a; font-size: 12px; }\
    .title { font-size: 15px; font-weight: 600; } .ours { font-weight: 700; }\
    .bar { fill: #9aa4ad; } .bar.our { fill: #2f7fd1; } .one { stroke: #57606a; stroke-dasharray: 3 3; }\
    @media (prefers-color-scheme: dark) {\
    text { fill: #e3e6e8; } .back { fill: #14171a; stroke: #333a41; } .dim, .note { fill: #9aa4ad; }\
    .bar { fill: #59636c; } .bar.our { fill: #3f8fe0; } .one { stroke: #9aa4ad; } }";

const PANELS: [(usize, &str, &str); 3] = [
    (PROGRAMS_TIME, "whole programs", "CPU time"),
    (PROGRAMS_PEAK, "whole programs", "peak memory"),
    (CALLS, "malloc and free alone", "time of a call"),
];

const WIDTH: f64 = 760.0;
const NAMES: f64 = 210.0;
const PANEL: f64 = (WIDTH - NAMES - 16.0) / 3.0;
const TOP: f64 = 84.0;
const ROW: f64 = 25.0;
/// The width in pixels that bars may use. The figures are at the right of the bars.
const BARS: f64 = PANEL - 62.0;
const FIGURES: f64 = PANEL - 18.0;

/// Draws the chart. `None` if no program was measured under several mallocs.
pub fn draw(machines: &[Machine], mallocs: &Mallocs) -> Option<String> {
    if mallocs.lead() != PROGRAMS_TIME || mallocs.shown.len() < 2 {
        return None;
    }
    let bottom = TOP + ROW * mallocs.shown.len() as f64;
    let notes = notes(machines, mallocs);
    let height = bottom + 22.0 + 17.0 * notes.len() as f64;
    let label = "Time and memory with each malloc, relative to glibc's malloc (1)";
    let drawing = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (WIDTH) " " (height) } width=(WIDTH) height=(height) role="img" aria-label=(label) {
            title { (label) }
            style { (PreEscaped(STYLE)) }
            rect.back x="0.5" y="0.5" width=(WIDTH - 1.0) height=(height - 1.0) rx="8" {}
            text.title x="14" y="26" { (label) "; less is better" }
            @for (place, contender) in mallocs.shown.iter().enumerate() {
                text.ours[contender == OURS] x="14" y=(TOP + ROW * place as f64 + 16.0) { (known_as(contender)) }
            }
            @for (place, panel) in PANELS.iter().enumerate() { (one_panel(mallocs, place, panel, bottom)) }
            @for (place, note) in notes.iter().enumerate() {
                text.note x="14" y=(bottom + 24.0 + 17.0 * place as f64) { (note) }
            }
        }
    };
    Some(drawing.into_string() + "\n")
}

fn one_panel(
    mallocs: &Mallocs,
    place: usize,
    (column, over, title): &(usize, &str, &str),
    bottom: f64,
) -> Markup {
    let left = NAMES + PANEL * place as f64;
    let figures: Vec<Option<f64>> =
        mallocs.shown.iter().map(|c| mallocs.mean(c, *column)).collect();
    let most = figures.iter().flatten().copied().fold(1.0, f64::max);
    let at = |figure: f64| figure / most * BARS;
    let round = |x: f64| (x * 10.0).round() / 10.0;
    html! {
        text.dim x=(round(left)) y="52" { (over) }
        text x=(round(left)) y="70" { (title) }
        @for (row, figure) in figures.iter().enumerate() {
            @let y = TOP + ROW * row as f64;
            @if let Some(figure) = figure {
                rect.bar.our[mallocs.shown[row] == OURS] x=(round(left)) y=(y + 3.0) width=(round(at(*figure))) height=(ROW - 8.0) rx="2" {}
                text.ours[mallocs.shown[row] == OURS] x=(round(left + FIGURES)) y=(y + 16.0) text-anchor="end" { (number(*figure)) }
            } @else {
                text.dim x=(round(left)) y=(y + 16.0) { "not measured" }
            }
        }
        line.one x1=(round(left + at(1.0))) x2=(round(left + at(1.0))) y1=(TOP - 4.0) y2=(bottom) {}
    }
}

/// Returns texts that explain what the figures mean, and where Mallard loses.
fn notes(machines: &[Machine], mallocs: &Mallocs) -> Vec<String> {
    let cases = |column: usize| {
        let counts = mallocs.machines_with(column).map(|(_, all)| all[0].cases(column) as f64);
        from_to(counts).unwrap_or_default().replace(".00", "").replace(".0", "")
    };
    let names = |column: usize| {
        let names: Vec<&str> = mallocs.machines_with(column).map(|(m, _)| &*m.common).collect();
        names.join(", ")
    };
    let mut notes = vec![
        format!(
            "Programs: means of {} programs on {}.",
            cases(PROGRAMS_TIME),
            names(PROGRAMS_TIME)
        ),
        format!("Calls: means of {} cases on {}.", cases(CALLS), names(CALLS)),
    ];
    let groups = Groups::of(machines);
    let lost = |suite: &str, kind: Kind| {
        groups.get(suite, kind).map_or((0, 0), |g| (g.lost(), g.compared))
    };
    let ((time, times), (peak, peaks), (call, calls)) =
        (lost("programs", Kind::Time), lost("programs", Kind::Memory), lost("malloc", Kind::Time));
    notes.push(format!(
        "Mallard loses to the best other malloc in {time} of {times} program times, {peak} of {peaks} program memory \
         peaks, and {call} of {calls} call times."
    ));
    notes
}
