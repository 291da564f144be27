#!/usr/bin/python3
"""Tests a page of `mallard bench report` in a headless Chromium. `page.py PAGE [SCREENSHOTS]`

chromium.py says what a promise is. A promise that is not kept makes the status 1. If a folder is
given, screenshots are written to it: wide and narrow, light and dark.
"""
import sys
from pathlib import Path

import chromium
from chromium import luminance, pixel, run
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select

page = Path(sys.argv[1]).resolve()
shots = Path(sys.argv[2]) if len(sys.argv) > 2 else None


def open_page(driver, width=1280, scheme="light"):
    chromium.open_file(driver, page, width, scheme)


def choose(driver, control, value):
    Select(driver.find_element(By.ID, control)).select_by_value(value)


def shown_titles(driver):
    """Returns the titles of the tables that the selectors show."""
    return run(driver, """return [...document.querySelectorAll('.machine:not([hidden]) .t:not([hidden]) h4')]
        .map(h => h.textContent)""")


promises = []


def promise(check):
    promises.append(check)
    return check


# --- the checks --------------------------------------------------------------

@promise
def the_first_screen_is_malloc_against_malloc(driver):
    open_page(driver)
    table = driver.find_element(By.CSS_SELECTOR, ".machine:not([hidden]) table")
    assert "mallard/malloc" in table.text and "glibc" in table.text, table.text[:200]
    assert table.location["y"] < 700, table.location


@promise
def the_answer_is_on_the_first_screen(driver):
    open_page(driver)
    table = driver.find_element(By.CSS_SELECTOR, ".machine:not([hidden]) .prose table")
    assert "situation" in table.text.lower(), table.text[:200]
    assert table.location["y"] < 1000, table.location
    assert "Built once, freed whole" in table.text and "AS" in table.text


@promise
def the_console_stays_empty(driver):
    open_page(driver)
    for control, value in (("variant", "faithful"), ("kind", "memory"), ("kind", "other"), ("kind", "time")):
        choose(driver, control, value)
    driver.find_element(By.ID, "theme").click()
    entries = driver.get_log("browser")
    assert entries == [], entries


@promise
def nothing_is_loaded_from_the_network(driver):
    assert chromium.asked_of_network(driver, page) == []


@promise
def the_variant_selects_tables(driver):
    open_page(driver)
    corrected = shown_titles(driver)
    choose(driver, "variant", "faithful")
    faithful = shown_titles(driver)
    assert any("corrected" in t for t in corrected) and not any("faithful" in t for t in corrected)
    assert any("faithful" in t for t in faithful) and not any("corrected" in t for t in faithful)


@promise
def the_kind_of_figure_selects_tables(driver):
    open_page(driver)
    time = shown_titles(driver)
    choose(driver, "kind", "memory")
    memory = shown_titles(driver)
    assert any("ns_per_op" in t for t in time) and not any("rss" in t for t in time)
    assert any("peak_rss_kib" in t for t in memory) and not any("ns_per_op" in t for t in memory)


@promise
def a_section_without_figures_says_so(driver):
    open_page(driver)
    choose(driver, "kind", "other")
    notes = run(driver, "return [...document.querySelectorAll('#m0-lakos1 > .none')].map(n => n.hidden)")
    assert notes == [False], notes


@promise
def the_machine_selects_all_sections(driver):
    open_page(driver)
    before = driver.find_element(By.CSS_SELECTOR, ".machine:not([hidden]) h2").text
    choose(driver, "machine", "1")
    after = driver.find_elements(By.CSS_SELECTOR, ".machine:not([hidden]) h2")
    assert len(after) == 1 and after[0].text != before, (before, [a.text for a in after])


@promise
def the_filter_hides_other_contenders(driver):
    open_page(driver)
    titles = """return [...document.querySelectorAll('#m0-all-lakos1 table')][0].querySelectorAll('thead th')"""
    run(driver, "document.querySelectorAll('details').forEach(d => d.open = true)")
    visible = "return [...arguments[0]].filter(h => h.offsetParent !== null).map(h => h.textContent)"
    everything = run(driver, visible, run(driver, titles))
    driver.find_element(By.ID, "filter").send_keys("AS7$ [")  # a word that is not a valid expression is text
    filtered = run(driver, visible, run(driver, titles))
    assert "AS3" in everything and "AS7" in everything, everything
    assert "AS3" not in filtered and "AS7" in filtered and "size" in filtered, filtered
    series = run(driver, "return Chart.getChart(document.querySelector('.machine:not([hidden]) [data-chart=memory] canvas')).data.datasets.map(d => d.label)")
    assert series and all(s.endswith("AS7") for s in series), series


@promise
def boxes_show_published_ratio_and_spread(driver):
    open_page(driver)
    run(driver, "document.querySelectorAll('details').forEach(d => d.open = true)")
    cells = "[...document.querySelectorAll('#m0-all-lakos1 .t:not([hidden]) td')]"
    after = f"return {cells}.some(c => !['none', 'normal'].includes(getComputedStyle(c, '::after').content))"
    small = f"return {cells}.some(c => c.querySelector('small')?.offsetParent)"
    for box, visible, at_first in (("published", small, True), ("ratio", after, False), ("spread", after, False)):
        assert run(driver, visible) == at_first, box
        run(driver, "document.getElementById(arguments[0]).click()", box)
        assert run(driver, visible) != at_first, box
        run(driver, "document.getElementById(arguments[0]).click()", box)


@promise
def a_title_sorts_its_column(driver):
    open_page(driver)
    table = "document.querySelector('#m0-peers table')"
    column = f"return [...{table}.tBodies[0].rows].map(r => parseFloat(r.children[2].textContent)).filter(v => !isNaN(v))"
    click = f"{table}.tHead.rows[0].children[2].click()"
    run(driver, click)
    up = run(driver, column)
    assert len(up) > 2 and up == sorted(up), up
    run(driver, click)
    assert run(driver, column) == sorted(up, reverse=True)


@promise
def curves_and_clouds_are_drawn(driver):
    open_page(driver)
    for name in ("scaling", "memory"):
        box = f".machine:not([hidden]) [data-chart={name}]"
        series = run(driver, f"return Chart.getChart(document.querySelector('{box} canvas')).data.datasets.length")
        assert series > 1, (name, series)
        painted = run(driver, f"""const c = document.querySelector('{box} canvas');
            return new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size""")
        assert painted > 10, (name, painted)
        cells = run(driver, f"return document.querySelectorAll('{box} details td').length")
        assert cells > 2, (name, cells)
        options = Select(driver.find_element(By.CSS_SELECTOR, f"{box} select"))
        assert len(options.options) > 1, name
        first = run(driver, f"return document.querySelector('{box} canvas').getAttribute('aria-label')")
        options.select_by_index(1)
        assert run(driver, f"return document.querySelector('{box} canvas').getAttribute('aria-label')") != first


@promise
def replays_are_drawn_beside_reality(driver):
    open_page(driver)
    box = ".machine:not([hidden]) [data-chart=calibration]"
    chart = f"Chart.getChart(document.querySelector('{box} canvas'))"
    labels = run(driver, f"return {chart}.data.datasets.map(d => d.label)")
    assert labels == ["mallard", "jemalloc", "replay and reality agree", "predicted interval"], labels
    points = run(driver, f"return {chart}.data.datasets.slice(0, 2).map(d => d.data.map(p => [p.program, p.x, p.y]))")
    assert points == [[["perl", -10, -8], ["lua", -1.5, -1]], [["perl", 6, 1]]], points
    ends = run(driver, f"return {chart}.data.datasets[2].data.map(p => p.x === p.y)")
    assert ends == [True, True], ends
    painted = run(driver, f"""const c = document.querySelector('{box} canvas');
        return new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size""")
    assert painted > 10, painted
    cells = run(driver, f"return [...document.querySelectorAll('{box} details tbody tr')].map(r => r.textContent)")
    assert cells[0] == "perlmallard-10gain-8-14 to -8" and len(cells) == 3, cells
    Select(driver.find_element(By.CSS_SELECTOR, f"{box} select")).select_by_index(1)
    label = run(driver, f"return document.querySelector('{box} canvas').getAttribute('aria-label')")
    assert label == "peak memory", label
    driver.find_element(By.ID, "filter").send_keys("jemalloc")
    labels = run(driver, f"return {chart}.data.datasets.map(d => d.label)")
    assert labels == ["jemalloc", "replay and reality agree"], labels
    choose(driver, "machine", "1")  # it has no such rows
    assert driver.find_elements(By.CSS_SELECTOR, box) == []


@promise
def light_and_dark_follow_the_system(driver):
    for scheme, is_light in (("light", True), ("dark", False)):
        open_page(driver, scheme=scheme)
        assert (luminance(driver, "body", "backgroundColor") > 0.5) == is_light, scheme
        assert (luminance(driver, "body", "color") < 0.5) == is_light, scheme
        assert (sum(pixel(driver, 3, 60)) > 380) == is_light, scheme


@promise
def the_button_changes_the_theme(driver):
    open_page(driver, scheme="light")
    driver.find_element(By.ID, "theme").click()
    assert luminance(driver, "body", "backgroundColor") < 0.5
    open_page(driver, scheme="light")
    assert luminance(driver, "body", "backgroundColor") < 0.5, "forgotten after a reload"
    driver.find_element(By.ID, "theme").click()
    assert luminance(driver, "body", "backgroundColor") > 0.5


@promise
def tables_scroll_sideways_and_the_page_does_not(driver):
    for width in (390, 320, 1280):
        open_page(driver, width)
        assert not chromium.is_too_wide(driver, width), width


@promise
def every_control_has_a_name(driver):
    open_page(driver)
    assert chromium.nameless_controls(driver) == []


def main():
    driver = chromium.start()
    try:
        failed = chromium.keep(driver, promises)
        if shots:
            chromium.take_screenshots(driver, page, shots)
    finally:
        driver.quit()
    return failed > 0


sys.exit(main())
