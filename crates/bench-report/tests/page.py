#!/usr/bin/python3
"""Tests a page of `./x bench report` in a headless Chromium. `page.py PAGE [SCREENSHOTS]`

If a check fails (chromium.py calls checks promises), the exit status is 1. If the directory
SCREENSHOTS is given, screenshots are written to it: wide and narrow, light and dark.
"""
import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "mallard-page/browser"))
import chromium
from chromium import luminance, pixel, run
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import Select, WebDriverWait

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


def open_all(driver):
    """Opens all closed parts of the page, and waits until their tables are unpacked."""
    run(driver, "document.querySelectorAll('details').forEach(d => d.open = true)")
    WebDriverWait(driver, 60).until(lambda d: run(d, "return document.querySelectorAll('[data-packed]').length") == 0)


promises = []


def promise(check):
    promises.append(check)
    return check


# --- the checks --------------------------------------------------------------

@promise
def the_first_screen_has_sentences_and_compares_mallard_with_every_malloc(driver):
    for width, height in ((1280, 900), (360, 1400)):
        chromium.open_file(driver, page, width, height=height)
        said = driver.find_element(By.ID, "said")
        # The results are 11 and 30 ns, each with noise of 5 %.
        factor = re.search(r"Mallard needs (0\.\d\d) times the time of a call", said.text)
        assert factor and 0.33 <= float(factor[1]) <= 0.41, said.text
        group = driver.find_element(By.CSS_SELECTOR, ".bars")
        assert group.location["y"] + group.size["height"] < height, (width, group.location, group.size)
        assert "Mallard" in group.text and "glibc 2.36" in group.text, group.text


@promise
def a_chosen_malloc_is_compared_in_words_on_every_machine_and_case_by_case(driver):
    open_page(driver)
    Select(driver.find_element(By.ID, "peer")).select_by_visible_text("mimalloc 2.0.9")
    said = driver.find_element(By.ID, "said").text
    # The results are 11 and 14 ns, each with noise of 5 %, for four numbers of threads.
    factor = re.search(r"a call of malloc or free alone needs (0\.\d\d) times the time", said)
    assert factor and 0.70 <= float(factor[1]) <= 0.88, said
    assert "(4 won, 0 within noise, 0 lost)" in said, said
    titles = run(driver, "return [...document.querySelectorAll('#versus-bars thead th')].map(h => h.textContent)")
    assert titles[1:] == ["Test CPU, 4 CPUs", "Other CPU, 2 CPUs"], titles
    bars = run(driver, "return [...document.querySelectorAll('.bars .line')].map(l => [l.className, l.textContent])")
    assert len(bars) == 4 and all("won" in kind for kind, _ in bars), bars
    choose(driver, "machine", "1")
    assert "On Other CPU" in driver.find_element(By.ID, "said").text, "another machine keeps the malloc"
    assert driver.find_element(By.ID, "peer").get_attribute("value") == "mimalloc 2.0.9"


@promise
def the_answer_is_reached_from_the_list_of_sections(driver):
    open_page(driver)
    link = driver.find_element(By.CSS_SELECTOR, ".machine:not([hidden]) nav a[href='#m0-which']")
    link.click()
    table = driver.find_element(By.CSS_SELECTOR, "#m0-which .prose table")
    assert "situation" in table.text.lower(), table.text[:200]
    assert "Built once, freed whole" in table.text and "AS" in table.text


@promise
def a_closed_part_is_unpacked_when_it_is_opened(driver):
    open_page(driver)
    assert run(driver, "return document.querySelectorAll('#m0-all-lakos1 table').length") == 0
    choose(driver, "kind", "memory")
    open_all(driver)
    shown = shown_titles(driver)
    assert any("peak_rss_kib" in t for t in shown) and not any("ns_per_op" in t for t in shown), shown
    assert run(driver, "return document.querySelectorAll('#m0-measured code').length") > 0


@promise
def a_filter_that_nothing_matches_says_so(driver):
    open_page(driver)
    note = driver.find_element(By.ID, "unmatched")
    assert not note.is_displayed()
    driver.find_element(By.ID, "filter").send_keys("zzz")
    assert note.is_displayed() and 'matches "zzz"' in note.text and "mallard/" in note.text, note.text
    driver.find_element(By.ID, "filter").clear()
    driver.find_element(By.ID, "filter").send_keys("mallard")
    assert not note.is_displayed()


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
    open_all(driver)
    corrected = shown_titles(driver)
    choose(driver, "variant", "faithful")
    faithful = shown_titles(driver)
    assert any("corrected" in t for t in corrected) and not any("faithful" in t for t in corrected)
    assert any("faithful" in t for t in faithful) and not any("corrected" in t for t in faithful)


@promise
def the_kind_of_figure_selects_tables(driver):
    open_page(driver)
    open_all(driver)
    time = shown_titles(driver)
    choose(driver, "kind", "memory")
    memory = shown_titles(driver)
    assert any("ns_per_op" in t for t in time) and not any("rss" in t for t in time)
    assert any("peak_rss_kib" in t for t in memory) and not any("ns_per_op" in t for t in memory)


@promise
def a_section_without_figures_says_so(driver):
    open_page(driver)
    open_all(driver)
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
    open_all(driver)
    visible = "return [...arguments[0]].filter(h => h.offsetParent !== null).map(h => h.textContent)"
    everything = run(driver, visible, run(driver, titles))
    driver.find_element(By.ID, "filter").send_keys("AS7$ [")  # an invalid regular expression is compared as text
    filtered = run(driver, visible, run(driver, titles))
    assert "AS3" in everything and "AS7" in everything, everything
    assert "AS3" not in filtered and "AS7" in filtered and "size" in filtered, filtered
    series = run(driver, "return Chart.getChart(document.querySelector('.machine:not([hidden]) [data-chart=memory] canvas')).data.datasets.map(d => d.label)")
    assert series and all(s.endswith("AS7") for s in series), series


@promise
def boxes_show_published_ratio_and_spread(driver):
    open_page(driver)
    open_all(driver)
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
def replays_are_drawn_against_measurements(driver):
    open_page(driver)
    box = ".machine:not([hidden]) [data-chart=calibration]"
    chart = f"Chart.getChart(document.querySelector('{box} canvas'))"
    labels = run(driver, f"return {chart}.data.datasets.map(d => d.label)")
    assert labels == ["mallard", "jemalloc", "replay and measurement agree", "predicted interval"], labels
    points = run(driver, f"return {chart}.data.datasets.slice(0, 2).map(d => d.data.map(p => [p.program, p.x, p.y]))")
    assert points == [[["perl", 10, 8], ["lua", 1.5, 1]], [["perl", -6, -1]]], points
    ends = run(driver, f"return {chart}.data.datasets[2].data.map(p => p.x === p.y)")
    assert ends == [True, True], ends
    painted = run(driver, f"""const c = document.querySelector('{box} canvas');
        return new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size""")
    assert painted > 10, painted
    cells = run(driver, f"return [...document.querySelectorAll('{box} details tbody tr')].map(r => r.textContent)")
    assert cells[0] == "perlmallard10gain88 to 14" and len(cells) == 3, cells
    Select(driver.find_element(By.CSS_SELECTOR, f"{box} select")).select_by_index(1)
    label = run(driver, f"return document.querySelector('{box} canvas').getAttribute('aria-label')")
    assert label == "peak memory", label
    driver.find_element(By.ID, "filter").send_keys("jemalloc")
    labels = run(driver, f"return {chart}.data.datasets.map(d => d.label)")
    assert labels == ["jemalloc", "replay and measurement agree"], labels
    choose(driver, "machine", "1")  # this machine has no such results
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
        open_all(driver)
        assert not chromium.is_too_wide(driver, width), width


@promise
def a_table_of_figures_leaves_room_for_figures_on_a_phone(driver):
    open_page(driver, 320)
    open_all(driver)
    widths = run(driver, """return [...document.querySelectorAll('#m0-all-malloc .t:not([hidden]) table')]
        .map(t => [t.tBodies[0].rows[0].cells[0].offsetWidth, t.closest('.scroll').clientWidth])""")
    assert widths and all(first <= 0.5 * whole for first, whole in widths), widths


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
