//! Makes an HTML page in one file that loads nothing from the network. The benchmark page and the
//! report of a trace share this code for theme, tables, sorting, curves, and figures with units.

#![deny(missing_docs, unsafe_code)]

use maud::{html, Markup, PreEscaped, DOCTYPE};

/// The content security policy of a page, which forbids the page and its scripts to load anything.
const POLICY: &str =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

const THEME_STYLE: &str = include_str!("theme.css");
const TABLE_STYLE: &str = include_str!("table.css");

/// The scripts that all pages contain. A script may use names that scripts before it in this list
/// define.
const SHARED: [&str; 4] = [
    include_str!("theme.js"),
    include_str!("table.js"),
    include_str!("curves.js"),
    include_str!("format.js"),
];

const CHART_JS: &str = include_str!(concat!(env!("OUT_DIR"), "/chart.js"));

/// Returns the text of Chart.js, if `build.rs` found it. Without Chart.js a page shows tables in
/// place of curves.
pub fn chart_js() -> Option<&'static str> {
    Some(CHART_JS).filter(|text| !text.is_empty())
}

/// A page, with everything that differs from page to page.
pub struct Page<'a> {
    /// The title of the page.
    pub title: &'a str,
    /// The command that makes the page. It stands near the start of the file.
    pub made_by: &'a str,
    /// The style sheets that only this page has.
    pub styles: &'a [&'a str],
    /// The class of the body.
    pub class: &'a str,
    /// The content of the body.
    pub body: Markup,
    /// The data as JSON. Scripts find the data in the element `data`.
    pub data: &'a str,
    /// The text of Chart.js, or `None` for a page without curves.
    pub chart_js: Option<&'a str>,
    /// The scripts that only this page has, in order.
    pub scripts: &'a [&'a str],
}

impl Page<'_> {
    /// Returns the page as the text of an HTML file.
    pub fn render(self) -> String {
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(POLICY);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="generator" content=(self.made_by);
                    link rel="icon" href="data:,";
                    title { (self.title) }
                    style { (PreEscaped(THEME_STYLE)) (PreEscaped(TABLE_STYLE)) }
                    @for style in self.styles { style { (PreEscaped(style)) } }
                }
                body.(self.class) {
                    (self.body)
                    script id="data" type="application/json" { (PreEscaped(safe_json(self.data))) }
                    @if let Some(library) = self.chart_js {
                        script id="chart-js" { (PreEscaped(inert(library))) }
                    }
                    script { (PreEscaped(inert(&joined(self.scripts)))) }
                }
            }
        }
        .into_string()
    }
}

/// Wraps all scripts of a page in one function. The scripts can use each other's names, but define
/// no global names.
fn joined(own: &[&str]) -> String {
    let all: Vec<&str> = SHARED.iter().chain(own).copied().collect();
    format!("(() => {{\n\"use strict\";\n{}}})();\n", all.join("\n"))
}

/// Escapes each `<` of JSON, because a script must not contain a tag. In valid JSON, `<` occurs
/// only in strings, where an escape is allowed.
fn safe_json(json: &str) -> String {
    json.replace('<', "\\u003c")
}

/// Escapes closing tags in a script, so that the script can stand inside a `<script>` element.
fn inert(script: &str) -> String {
    script.replace("</script", "<\\/script")
}

/// Returns the button that changes between the light and the dark theme.
pub fn theme_button() -> Markup {
    html! { button id="theme" type="button" { "dark / light" } }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(data: &str, scripts: &[&str]) -> String {
        let body = html! { p { "text" } };
        let chart_js = Some("</script>chart");
        Page { title: "<t>", made_by: "m", styles: &[], class: "c", body, data, chart_js, scripts }
            .render()
    }

    #[test]
    fn a_page_contains_no_closing_tag_of_its_scripts_or_data() {
        let text =
            page(r#"{"name":"</script><img onerror=alert(1)>"}"#, &["const x = '</script>';"]);
        // Expects one closing tag for the data, one for Chart.js and one for the scripts.
        assert_eq!(text.matches("</script>").count(), 3, "{text}");
        assert!(!text.contains("<img") && text.contains("<title>&lt;t&gt;</title>"));
    }

    #[test]
    fn a_page_must_not_load_other_files() {
        assert!(page("{}", &[]).contains("default-src 'none'"));
    }
}
