"""Tests of plots, and of the tables of their figures."""
import data
from shared import PLOTS, keys_of, open_page, picture, promise, table_of
from chromium import run
from selenium.webdriver.common.by import By


@promise
def every_plot_has_painted_pixels(driver):
    open_page(driver)
    for plot in PLOTS:
        colours, _ = picture(driver, plot)
        assert colours > 5, (plot, colours)


@promise
def every_plot_has_a_table_behind_it(driver):
    open_page(driver)
    for plot, least in (("time", 800), ("icicle", 20), ("heat", len(data.LIVES)), ("frees", 6), ("map", 40)):
        rows = table_of(driver, plot)
        assert len(rows) > least, (plot, len(rows))
        assert sum(1 for row in rows[1:] for cell in row if cell) > least, plot


@promise
def the_split_is_stacked_up_to_resident_memory(driver):
    open_page(driver)
    rows = keys_of(driver, "time")
    assert len(rows) == 800
    for row in rows[1:5] + rows[6:]:
        assert sum(row[:-1]) == row[-1], row
    labels = run(driver, "return Chart.getChart(document.querySelector('#time canvas')).data.datasets.map(d => d.label)")
    assert labels == ["in use", "rounding", "gaps", "kept by the allocator", "code and files", "stacks and other", "resident memory"], labels
    explained = [d.text for d in driver.find_elements(By.CSS_SELECTOR, "#time-parts dt")]
    assert explained == labels, explained


@promise
def tables_behind_plots_are_sorted_by_their_titles(driver):
    open_page(driver)
    table_of(driver, "frees")
    head = driver.find_elements(By.CSS_SELECTOR, "#frees details.figures thead th")[2]
    head.click()
    blocks = [row[1] for row in keys_of(driver, "frees")]
    assert len(blocks) > 3
    run(driver, "arguments[0].click()", driver.find_elements(By.CSS_SELECTOR, "#frees details.figures thead th")[2])
    shown = run(driver, "return [...document.querySelectorAll('#frees details.figures tbody tr')].map(r => Number(r.cells[2].dataset.key))")
    assert shown == sorted(shown), shown
