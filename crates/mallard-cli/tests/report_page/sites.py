"""Tests of the table of sites."""
from shared import by_id, choose_row, open_page, promise, sites_shown, stack_names, title, words
from chromium import run
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By


@promise
def a_title_sorts_the_sites(driver):
    open_page(driver)
    for text, key in (("blocks", "count"), ("never freed", "never"), ("bytes", "bytes"), ("other thread", "cross")):
        title(driver, text).click()
        column = words["sites"][key]
        down = [column[site] for site in sites_shown(driver)]
        assert down == sorted(column, reverse=True)[:len(down)], text
        assert title(driver, text).get_attribute("aria-sort") == "descending"
        title(driver, text).click()
        up = [column[site] for site in sites_shown(driver)]
        assert up == sorted(column)[:len(up)], text


@promise
def a_measure_sorts_the_sites_that_have_it_before_the_others(driver):
    open_page(driver)
    title(driver, "D").click()
    measured = dict(zip(words["sites"]["measured"], words["sites"]["d"]))
    shown = [measured[site] for site in sites_shown(driver)]
    assert shown == sorted(measured.values(), reverse=True)[:len(shown)]
    title(driver, "D").click()
    shown = [measured[site] for site in sites_shown(driver)]
    assert shown == sorted(measured.values())[:len(shown)]


@promise
def a_search_finds_sites_by_any_part_of_their_stacks(driver):
    open_page(driver)
    for sought in ("render_page", "LIBINDEX", "cache.cpp"):
        box = by_id(driver, "sites-search")
        box.clear()
        box.send_keys(sought)
        wanted = [site for site in range(400) if any(sought.lower() in name.lower() for name in stack_names(words, site))]
        assert by_id(driver, "sites-count").text == f"{len(wanted)} of 400 sites", (sought, by_id(driver, "sites-count").text)
        assert set(sites_shown(driver)) <= set(wanted) and sites_shown(driver), sought
    box.clear()
    box.send_keys("no such function")
    assert by_id(driver, "sites-none").is_displayed() and sites_shown(driver) == []


@promise
def a_site_is_named_by_the_function_that_wants_the_memory(driver):
    open_page(driver)
    names = run(driver, "return [...document.querySelectorAll('#sites-list tbody tr:not(.spacer) th b')].map(b => b.textContent)")
    assert names and not any("operator new" in name for name in names), names
    choose_row(driver)
    assert "operator new" in by_id(driver, "site-stack").text


def scroll_to(driver, cell):
    """Scrolls, and waits until the page has handled the event, which hides the tip of a hover or a tap."""
    driver.execute_async_script("""arguments[0].scrollIntoView({block: 'center', inline: 'center'});
        requestAnimationFrame(() => requestAnimationFrame(arguments[1]));""", cell)


@promise
def a_measure_says_what_it_means_on_hover_focus_and_tap(driver):
    open_page(driver)
    cell = next(c for c in driver.find_elements(By.CSS_SELECTOR, "#sites-list td.measure") if c.text not in ("", "too few"))
    scroll_to(driver, cell)
    ActionChains(driver).move_to_element(cell).perform()
    said = by_id(driver, "tip").text
    assert "density: " in said and "95 % confidence" in said and "n = " in said and "speed matters" in said and "n counts" not in said, said
    ActionChains(driver).move_to_element(by_id(driver, "sites-count")).perform()
    assert not by_id(driver, "tip").is_displayed()
    run(driver, "arguments[0].focus()", title(driver, "V"))
    assert "sizes differ" in by_id(driver, "tip").text
    open_page(driver, width=360)
    cell = driver.find_element(By.CSS_SELECTOR, "#sites-list td.measure")
    scroll_to(driver, cell)
    run(driver, "arguments[0].click()", cell)
    assert "density" in by_id(driver, "tip").text


@promise
def a_measure_of_few_calls_says_so(driver):
    open_page(driver)
    title(driver, "blocks").click()
    title(driver, "blocks").click()
    site = sites_shown(driver)[0]
    few = site not in words["sites"]["measured"]
    cells = run(driver, "return [...document.querySelectorAll(`#sites-list tr[data-site='${arguments[0]}'] td.measure`)].map(c => c.textContent)", site)
    assert few and cells == ["too few"] * 6, (site, cells)
