//! Makes the page of `mallard report`, which is one HTML file that shows the data of a report. This
//! module makes the elements. The scripts of the page read the data and fill the elements.

use mallard_page::{chart_js, theme_button, Page};
use maud::{html, Markup};

/// The text by which a page of `mallard report` is recognised. It stands near the start of the
/// file.
pub const MARK: &str = "mallard report";

const STYLES: [&str; 3] = [
    include_str!("page/report.css"),
    include_str!("page/plots.css"),
    include_str!("page/advice.css"),
];

/// The scripts in order. Each script uses only names from the scripts before it in the list. The
/// last script starts the page.
const SCRIPTS: [&str; 20] = [
    include_str!("page/data.js"),
    include_str!("page/choice.js"),
    include_str!("page/tip.js"),
    include_str!("page/canvas.js"),
    include_str!("page/head.js"),
    include_str!("page/time.js"),
    include_str!("page/list.js"),
    include_str!("page/sites.js"),
    include_str!("page/site.js"),
    include_str!("page/tree.js"),
    include_str!("page/icicle.js"),
    include_str!("page/heat.js"),
    include_str!("page/frees.js"),
    include_str!("page/map.js"),
    include_str!("page/method.js"),
    include_str!("page/saving.js"),
    include_str!("page/lanes.js"),
    include_str!("page/matrix.js"),
    include_str!("page/advice.js"),
    include_str!("page/start.js"),
];

/// The sections in order, each with its id and its short title for the bar.
const SECTIONS: [(&str, &str); 10] = [
    ("advice", "Advice"),
    ("matrix", "Changes"),
    ("lanes", "Regions"),
    ("time", "Time"),
    ("sites", "Sites"),
    ("icicle", "Stacks"),
    ("heat", "Lifetimes"),
    ("frees", "Threads"),
    ("map", "Addresses"),
    ("method", "Method"),
];

/// The values that the icicle can show, each with its key in the data and its title.
const WEIGHTS: [(&str, &str); 6] = [
    ("bytes", "bytes"),
    ("count", "blocks"),
    ("peak", "at the peak"),
    ("short", "short-lived"),
    ("never", "never freed"),
    ("cross", "other thread"),
];

/// Makes the page of a report. `data_json` is the object of the report.
pub fn page(data_json: &str, title: &str) -> String {
    Page {
        title,
        made_by: MARK,
        styles: &STYLES,
        class: "report",
        body: body(),
        data: data_json,
        chart_js: chart_js(),
        scripts: &SCRIPTS,
    }
    .render()
}

fn body() -> Markup {
    html! {
        a.skip href="#sites" { "Go to the sites" }
        (first_screen())
        (bar())
        main {
            (advice())
            (matrix())
            (lanes())
            (time())
            (sites())
            (icicle())
            (heat())
            (frees())
            (map())
            (method())
        }
        div id="tip" role="tooltip" hidden {}
        p.unseen id="said" aria-live="polite" {}
        noscript { p { "This page draws with JavaScript, which is switched off here. " code { "mallard stats" } " and " code { "mallard sites" } " print the same in a terminal." } }
    }
}

fn first_screen() -> Markup {
    html! {
        header {
            p.above { "What " span id="name" {} " did with memory" }
            h1 id="command" {}
            button.link id="command-more" type="button" aria-expanded="false" aria-controls="command" hidden { "whole command" }
            p.run id="run" {}
            div.lead {
                div { div id="sentences" {} p.bound id="bound" hidden {} }
                dl id="figures" {}
            }
            p.none id="empty" hidden { "The trace has no allocations: there is nothing to show. " code { "mallard record" } " makes one." }
        }
    }
}

/// Renders the bar that stays at the top, with links to the sections, the chosen sites, and the
/// theme.
fn bar() -> Markup {
    html! {
        div.controls {
            nav aria-label="Sections" {
                @for (id, title) in SECTIONS { a href={ "#" (id) } { (title) } }
            }
            button.chip id="chip" type="button" hidden {
                span.unseen { "Every plot shows only " } span id="chip-name" {} span aria-hidden="true" { " ×" } span.unseen { ": show the whole program again" }
            }
            (theme_button())
        }
    }
}

/// Renders a section with a title, an introduction and its content.
fn section(id: &str, title: &str, intro: Markup, content: Markup) -> Markup {
    html! {
        section.section id=(id) aria-labelledby={ (id) "-title" } {
            h2 id={ (id) "-title" } { (title) }
            p.intro { (intro) }
            (content)
        }
    }
}

/// Renders the table with the figures of a plot. A script fills the table when the reader opens it.
fn figures(label: &str) -> Markup {
    html! {
        details.figures {
            summary { "Show as table" }
            div.scroll tabindex="0" role="region" aria-label=(label) { table {} }
        }
    }
}

/// Renders the legend of a scale of shades, with words for both ends.
fn scale(least: &str, most: &str) -> Markup {
    html! { p.scale aria-hidden="true" { (least) span {} (most) } }
}

fn note_of_choice() -> Markup {
    html! { p.of-choice hidden {} }
}

fn advice() -> Markup {
    let intro = html! { "Which allocator the program should use, where, and what the program gains: estimated from the recording, and, for other mallocs, measured in runs of the program." };
    section(
        "advice",
        "What to change",
        intro,
        html! {
            div id="no-advice" { p { "The recording has no advice yet. This command asks for it, and the next report shows it:" } pre tabindex="0" { code id="advice-command" {} } }
            div id="advice-all" {
                p id="verdict" {}
                p id="advice-sentence" {}
                div id="wish" hidden {}
                div id="cards" {}
                ul id="advice-notes" aria-label="Notes on the advice" {}
            }
        },
    )
}

fn matrix() -> Markup {
    let intro = html! { "Each change as the CPU time and memory that the program would need, with 95 % intervals; further left and further down is less. " span id="matrix-words" {} };
    section(
        "matrix",
        "All changes that were considered",
        intro,
        html! {
            div.canvas.square { canvas role="img" aria-label="CPU time against memory, of each change" {} }
            p.missing hidden {}
            (figures("All changes, as a table"))
        },
    )
}

fn lanes() -> Markup {
    let intro = html! { "A region is a function whose blocks could be freed together: a lane for each thread, a bar for each call. Red blocks outlive the call, so that their memory must not be dropped with it." };
    section(
        "lanes",
        "Regions over time",
        intro,
        html! {
            div.tools { label { "region " select id="lanes-of" {} } }
            p id="lanes-words" {}
            ul id="escape-sites" aria-label="Who allocates the blocks that outlive their instance" {}
            div.canvas { canvas tabindex="0" role="application" aria-label="Instances of a region over time. Arrow keys move." aria-describedby="lanes-said" {} }
            ul.lane-key aria-label="Colours of bars" { li.bar { "an instance" } li.end { "frees at its end, which wink-out skips" } li.escape { "has blocks that outlive it" } }
            p.said id="lanes-said" aria-live="polite" {}
            (figures("Instances of the region, as a table"))
        },
    )
}

fn time() -> Markup {
    let intro = html! { "The bytes that the program had in use, and its resident memory, divided by what the memory holds." };
    section(
        "time",
        "Memory over time",
        intro,
        html! {
            (note_of_choice())
            div.canvas.curve { canvas role="img" aria-label="Bytes in use and resident memory over time" {} }
            p.missing hidden {}
            dl.parts id="time-parts" {}
            (figures("Memory over time, as a table"))
        },
    )
}

fn sites() -> Markup {
    let intro = html! { "A site is a call stack that allocates. A click, or Enter, on a site shows that site alone in every plot. Click a column title to sort." };
    section(
        "sites",
        "Where memory is allocated",
        intro,
        html! {
            div.tools {
                input id="sites-search" type="search" placeholder="function, module or file" aria-label="Search the stacks of all sites";
                span id="sites-count" role="status" {}
            }
            div.scroll id="sites-box" {
                table id="sites-list" role="grid" tabindex="0" aria-label="Sites: arrow keys move, Enter chooses" {
                    thead { tr {} }
                    tbody {}
                }
            }
            p.none id="sites-none" hidden { "No call stack contains this text." }
            (site())
        },
    )
}

/// Renders the panel that describes the chosen site.
fn site() -> Markup {
    html! {
        article id="site" aria-labelledby="site-name" hidden {
            h3 id="site-name" {}
            div.two {
                div { div id="site-facts" {} div id="site-measures" {} }
                div { h4 { "Its stack, innermost first" } div.scroll id="site-stack" tabindex="0" role="region" aria-label="Stack of the site" {} }
            }
        }
    }
}

fn icicle() -> Markup {
    let intro = html! { "Callers above, callees below; the wider a frame, the more it and its callees allocated. A click zooms in." };
    section(
        "icicle",
        "Which calls lead to the allocations",
        intro,
        html! {
            div.tools {
                fieldset.choices {
                    legend.unseen { "What the width of a frame means" }
                    @for (index, (key, title)) in WEIGHTS.iter().enumerate() {
                        label { input type="radio" name="weight" value=(key) checked[index == 0]; span { (title) } }
                    }
                }
                input id="icicle-search" type="search" placeholder="highlight a function" aria-label="Highlight functions, modules or files";
                span id="icicle-found" role="status" {}
            }
            p.note id="weight-words" {}
            div.crumbs {
                ol id="crumbs" aria-label="Callers of the frame on top" {}
                button id="only" type="button" hidden { "Show only this in every plot" }
            }
            div.canvas.tall { canvas tabindex="0" role="application" aria-label="Icicle of call stacks. Arrow keys move, Enter zooms in, Escape zooms out, Home shows all." aria-describedby="icicle-said" {} }
            p.said id="icicle-said" aria-live="polite" {}
            ul.key id="modules" aria-label="Colours of modules" {}
            (figures("The frames of the icicle, as a table"))
        },
    )
}

fn heat() -> Markup {
    let intro = html! { "How large blocks are, and how long they live. Short lives at the bottom are cheap to serve from an arena; at the top are blocks that stay." };
    section(
        "heat",
        "Sizes and lifetimes",
        intro,
        html! {
            div.tools { label { "shade by " select id="heat-of" { option value="count" { "blocks" } option value="bytes" { "bytes" } } } }
            (note_of_choice())
            div.canvas { canvas tabindex="0" role="application" aria-label="Heat map of sizes and lifetimes. Arrow keys move." aria-describedby="heat-said" {} }
            (scale("few", "many"))
            p.said id="heat-said" aria-live="polite" {}
            (figures("Sizes and lifetimes, as a table"))
        },
    )
}

fn frees() -> Markup {
    section(
        "frees",
        "From thread to thread",
        html! { span id="frees-words" {} },
        html! {
            (note_of_choice())
            div.canvas { canvas tabindex="0" role="application" aria-label="Which thread frees what which thread allocated. Arrow keys move." aria-describedby="frees-said" {} }
            (scale("few", "many"))
            p.said id="frees-said" aria-live="polite" {}
            (figures("Frees from thread to thread, as a table"))
        },
    )
}

fn map() -> Markup {
    let intro = html! { "The heap in the order of its addresses, like text: the stronger the colour of a cell, the more of it is in use. Weak cells amid strong ones are fragmentation. A bar marks a jump between addresses. " span id="map-cell" {} };
    section(
        "map",
        "Addresses",
        intro,
        html! {
            div.tools.wide {
                button id="play" type="button" { "play" }
                input id="moment" type="range" min="0" value="0" aria-label="Moment of the map";
                span id="moment-words" {}
            }
            (note_of_choice())
            div.canvas { canvas tabindex="0" role="application" aria-label="Map of addresses. Arrow keys move." aria-describedby="map-said" {} }
            (scale("nearly empty", "full"))
            p.said id="map-said" aria-live="polite" {}
            (figures("Use of the heap over time, as a table"))
        },
    )
}

fn method() -> Markup {
    let intro = html! { "What was recorded, what was lost, and what the letters mean." };
    section(
        "method",
        "How this was measured",
        intro,
        html! {
            dl.facts id="method-facts" {}
            h3 { "What was lost" }
            p id="losses-none" { "Nothing was lost: the trace has every event." }
            div.scroll tabindex="0" role="region" aria-label="What was lost" { table id="losses" {} }
            ul id="notes" aria-label="Notes" {}
            h3 { "What D V L U C F mean" }
            dl.measures id="meanings" {}
            div id="next-box" hidden { h3 { "What to type next" } pre tabindex="0" { code id="next" {} } }
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_malicious_name_cannot_inject_markup_or_scripts() {
        let text = page(r#"{"strings":["</script><img onerror=alert(1)>"]}"#, "</title><b>");
        assert!(!text.contains("<img") && !text.contains("</title><b>"), "{text}");
    }

    #[test]
    fn each_section_has_a_link() {
        let text = page("{}", "t");
        for (id, _) in SECTIONS {
            assert!(text.contains(&format!("href=\"#{id}\"")), "{id}");
            assert!(text.contains(&format!("<section class=\"section\" id=\"{id}\"")), "{id}");
        }
    }
}
