"""Tests of the icicle of call stacks."""
from shared import by_id, click_row, crumbs, open_page, picture, promise, stack_names, table_of, words
from chromium import run
from selenium.webdriver.common.by import By


def children_of_main(weight):
    """Sums a weight over the functions that main calls."""
    sums = {}
    for site, node in enumerate(words["sites"]["node"]):
        names = []
        while node > 0:
            names.append(words["strings"][words["frames"]["func"][words["stacks"]["frame"][node]]])
            node -= words["stacks"]["up"][node]
        below = names[::-1][2] if len(names) > 2 else ""
        sums[below] = sums.get(below, 0) + words["sites"][weight][site]
    return sums


@promise
def each_of_six_weights_has_its_own_icicle(driver):
    open_page(driver)
    seen = set()
    for radio in driver.find_elements(By.NAME, "weight"):
        run(driver, "arguments[0].click()", radio)
        weight = radio.get_attribute("value")
        seen.add(picture(driver, "icicle")[1])
        table_of(driver, "icicle")
        rows = run(driver, """return [...document.querySelectorAll('#icicle details.figures tbody tr')]
            .map(row => [row.cells[0].textContent, Number(row.cells[2].textContent), Number(row.cells[3].dataset.key)])""")
        sums = children_of_main(weight)
        assert rows[0] == ["all stacks", 0, sum(words["sites"][weight])], (weight, rows[0])
        for name, depth, value in rows:
            if depth == 3:
                assert sums[name] == value, (weight, name, value, sums[name])
    assert len(seen) == 6, seen


@promise
def a_click_zooms_and_a_crumb_leads_back(driver):
    open_page(driver)
    before = picture(driver, "icicle")
    click_row(driver, 4)
    assert crumbs(driver)[:3] == ["all stacks", "_start", "main"] and len(crumbs(driver)) >= 4, crumbs(driver)
    assert picture(driver, "icicle") != before
    driver.find_elements(By.CSS_SELECTOR, "#crumbs button")[0].click()
    assert crumbs(driver) == ["all stacks"]
    run(driver, "document.activeElement.blur()")


@promise
def a_search_highlights_frames_and_says_their_share(driver):
    open_page(driver)
    before = picture(driver, "icicle")
    by_id(driver, "icicle-search").send_keys("main")
    assert by_id(driver, "icicle-found").text == "Found in 100 % of bytes.", by_id(driver, "icicle-found").text
    assert picture(driver, "icicle") != before
    by_id(driver, "icicle-search").clear()
    by_id(driver, "icicle-search").send_keys("parse_unit")
    found = sum(n for site, n in enumerate(words["sites"]["bytes"]) if "parse_unit" in stack_names(words, site))
    share = found / sum(words["sites"]["bytes"]) * 100
    said = by_id(driver, "icicle-found").text
    assert abs(float(said.split("Found in ")[1].split(" %")[0]) - share) < 0.6, (said, share)
