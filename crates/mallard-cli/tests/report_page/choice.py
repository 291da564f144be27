"""Tests that each plot follows the reader's choice of sites."""
from shared import PLOTS, below_main, by_id, choose_row, click_row, crumbs, keys_of, open_page, picture, promise, sites_shown, stack_names, table_of, title, wait_until, words
from chromium import run
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys


@promise
def a_site_filters_every_plot(driver):
    open_page(driver)
    before = {plot: (table_of(driver, plot), picture(driver, plot)) for plot in PLOTS}
    site = choose_row(driver, 3)
    assert by_id(driver, "chip").is_displayed()
    for plot in PLOTS:
        assert picture(driver, plot)[1] != before[plot][1][1], plot
    heat = sum(n for row in keys_of(driver, "heat") for n in row if n)
    assert heat == words["sites"]["count"][site], (heat, site)
    freed = sum(row[1] for row in keys_of(driver, "frees"))
    assert freed == words["sites"]["frees"][site], freed
    assert [row[0] for row in keys_of(driver, "time")] == words["detail"]["live"][site]
    assert "near the peak" in by_id(driver, "moment-words").text
    assert by_id(driver, "site").is_displayed()
    notes = [n.text for n in driver.find_elements(By.CSS_SELECTOR, ".of-choice")]
    assert len(notes) == 4 and all(n.startswith("Only ") for n in notes), notes


@promise
def the_chip_and_escape_show_the_whole_program_again(driver):
    open_page(driver)
    before = [picture(driver, plot) for plot in PLOTS]
    choose_row(driver, 2)
    by_id(driver, "chip").click()
    assert not by_id(driver, "chip").is_displayed() and not by_id(driver, "site").is_displayed()
    assert [picture(driver, plot) for plot in PLOTS] == before
    choose_row(driver, 2)
    ActionChains(driver).send_keys(Keys.ESCAPE).perform()
    assert not by_id(driver, "chip").is_displayed()


@promise
def a_frame_filters_every_plot_by_the_sites_below_it(driver):
    open_page(driver)
    click_row(driver, 3)
    name = crumbs(driver)[-1]
    run(driver, "document.getElementById('only').click()")
    chosen = [s for s in range(400) if len(stack_names(words, s)) and name in below_main(s)]
    assert by_id(driver, "sites-count").text == f"{len(chosen)} of 400 sites", (by_id(driver, "sites-count").text, len(chosen))
    known = [s for s in chosen if s < 300]
    heat = sum(n for row in keys_of(driver, "heat") for n in row if n)
    assert heat == sum(words["sites"]["count"][s] for s in known)
    note = driver.find_element(By.CSS_SELECTOR, "#heat .of-choice").text
    assert f"{len(known)} sites of {len(chosen)}" in note or len(known) == len(chosen), note


@promise
def the_end_of_a_stack_in_the_icicle_chooses_its_site(driver):
    open_page(driver)
    canvas = driver.find_element(By.CSS_SELECTOR, "#icicle canvas")
    run(driver, "arguments[0].focus()", canvas)
    for _ in range(40):
        canvas.send_keys(Keys.ARROW_DOWN)
    canvas.send_keys(Keys.ENTER)
    assert by_id(driver, "chip").is_displayed()
    assert "operator new" in by_id(driver, "icicle-said").text


@promise
def a_site_without_details_leaves_the_plots_as_they_are_and_says_so(driver):
    open_page(driver)
    before = picture(driver, "heat")
    title(driver, "bytes").click()
    small = next(place for place, site in enumerate(sites_shown(driver)) if site >= 300)
    choose_row(driver, small)
    assert picture(driver, "heat") == before
    assert "too small" in driver.find_element(By.CSS_SELECTOR, "#heat .of-choice").text


@promise
def the_map_follows_the_slider(driver):
    open_page(driver)
    before = picture(driver, "map")
    slider = by_id(driver, "moment")
    slider.send_keys(Keys.HOME)
    first = (picture(driver, "map"), by_id(driver, "moment-words").text)
    slider.send_keys(Keys.ARROW_RIGHT)
    assert before != first[0] != picture(driver, "map") and by_id(driver, "moment-words").text != first[1]
    run(driver, "document.getElementById('play').click()")
    wait_until(driver, "return Number(document.getElementById('moment').value) > 3")
    run(driver, "document.getElementById('play').click()")
