//! The page: one HTML file with the object of the report in it.

use crate::output::page::Page;
use maud::html;

/// What tells a page of `mallard report` from other files. It stands near the start of the file.
pub const MARK: &str = "mallard report";

/// Makes the page. `data_json` is the object of [`super::object`] as JSON.
pub fn page(data_json: &str, title: &str) -> String {
    Page {
        title,
        made_by: MARK,
        styles: &[],
        class: "report",
        body: html! { h1 { (title) } },
        data: data_json,
        chart_js: None,
        scripts: &[],
    }
    .render()
}
