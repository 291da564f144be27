"""The configuration of Sphinx for the site of the documentation. tools/site/build copies it."""
project = "Mallard"
author = "the authors of Mallard"
copyright = "the authors of Mallard; MIT or Apache 2.0"
extensions = ["myst_parser"]
exclude_patterns = ["files"]

highlight_language = "none"  # output of programs is not Python
myst_heading_anchors = 4  # the anchors that GitHub makes, to which the pages link
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
