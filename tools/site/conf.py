"""The configuration of Sphinx for the documentation site. tools/site/build copies this file."""
project = "Mallard"
author = "the authors of Mallard"
copyright = "the authors of Mallard; MIT or Apache 2.0"
extensions = ["myst_parser"]
exclude_patterns = ["files"]

highlight_language = "none"  # do not highlight the output of programs as Python
myst_heading_anchors = 4  # make the same anchors as GitHub, because the pages link to them
suppress_warnings = ["myst.header", "misc.highlighting_failure"]

html_theme = "furo"
html_title = "Mallard"
html_static_path = ["style.css"]
html_css_files = ["style.css"]
html_copy_source = False
html_show_sphinx = False
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0b6b53", "color-brand-content": "#0b6b53"},
    "dark_css_variables": {"color-brand-primary": "#5cc9a7", "color-brand-content": "#5cc9a7"},
}
pygments_style = "friendly"
pygments_dark_style = "monokai"
