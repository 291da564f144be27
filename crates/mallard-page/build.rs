//! Embeds Chart.js in the command, so that an installed `mallard` can draw curves in its HTML
//! pages. Chart.js is not in this repository. Debian's package `libjs-chart.js` has it.

use std::path::Path;
use std::{env, fs};

/// Where Debian's package `libjs-chart.js` puts Chart.js.
const OF_DEBIAN: &str = "/usr/share/javascript/chart.js/chart.min.js";

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=MALLARD_CHART_JS");
    let named = env::var("MALLARD_CHART_JS").ok().filter(|path| !path.is_empty());
    let is_named = named.is_some();
    let path = named.unwrap_or_else(|| OF_DEBIAN.to_string());
    let text = match fs::read_to_string(&path) {
        Ok(text) => {
            println!("cargo:rerun-if-changed={path}");
            text
        }
        Err(error) if is_named => {
            panic!("cannot read {path}, which MALLARD_CHART_JS names: {error}")
        }
        Err(_) => {
            println!(
                "cargo:warning=there is no {OF_DEBIAN}: pages will have tables in place of curves; \
                 help: apt-get install libjs-chart.js, then build with MALLARD_CHART_JS={OF_DEBIAN}"
            );
            String::new()
        }
    };
    let folder = env::var("OUT_DIR").expect("cargo sets OUT_DIR");
    fs::write(Path::new(&folder).join("chart.js"), text).expect("OUT_DIR can be written");
}
