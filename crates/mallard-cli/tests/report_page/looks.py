"""Tests of the appearance of the page: themes, widths, and keyboards."""
import chromium
from shared import PLOTS, by_id, choose_row, crumbs, open_page, picture, promise
from chromium import luminance, pixel, run
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys


@promise
def light_and_dark_follow_the_system(driver):
    seen = []
    for scheme, is_light in (("light", True), ("dark", False)):
        open_page(driver, scheme=scheme)
        assert (luminance(driver, "body", "backgroundColor") > 0.5) == is_light, scheme
        assert (luminance(driver, "body", "color") < 0.5) == is_light, scheme
        assert (sum(pixel(driver, 3, 60)) > 380) == is_light, scheme
        seen.append([picture(driver, plot)[1] for plot in PLOTS])
    assert all(a != b for a, b in zip(*seen)), seen


@promise
def the_button_changes_the_theme_of_page_and_plots(driver):
    open_page(driver, scheme="light")
    before = [picture(driver, plot)[1] for plot in PLOTS]
    by_id(driver, "theme").click()
    assert luminance(driver, "body", "backgroundColor") < 0.5
    assert all(a != b for a, b in zip(before, [picture(driver, plot)[1] for plot in PLOTS]))
    open_page(driver, scheme="light")
    assert luminance(driver, "body", "backgroundColor") < 0.5, "forgotten after a reload"


@promise
def the_page_never_scrolls_sideways(driver):
    for width in (320, 360, 390, 768, 1024, 1280):
        open_page(driver, width=width)
        choose_row(driver)
        assert not chromium.is_too_wide(driver, width), width


@promise
def a_keyboard_is_enough(driver):
    open_page(driver)
    order, body = [], driver.find_element(By.TAG_NAME, "body")
    body.send_keys(Keys.TAB)
    for _ in range(120):
        name = run(driver, "const a = document.activeElement; return a.id || a.name || a.closest('section')?.id + ' ' + a.tagName")
        order.append(name)
        if name == "sites-list":
            ActionChains(driver).send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER).perform()
        if name == "sites TH" and order.count(name) == 2:
            ActionChains(driver).send_keys(Keys.ENTER).perform()
        if name == "heat CANVAS":
            ActionChains(driver).send_keys(Keys.ARROW_RIGHT, Keys.ARROW_UP).perform()
            assert "block" in by_id(driver, "heat-said").text
        if name == "icicle CANVAS" and order.count(name) == 1:
            ActionChains(driver).send_keys(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER).perform()
            assert crumbs(driver)[-1] == "main", crumbs(driver)
            ActionChains(driver).send_keys(Keys.ESCAPE).perform()
            assert crumbs(driver)[-1] == "_start"
        ActionChains(driver).send_keys(Keys.TAB).perform()
    for name in ("theme", "lanes-of", "lanes CANVAS", "matrix SUMMARY", "sites-search", "sites-list", "weight", "icicle-search", "icicle CANVAS", "heat CANVAS",
                 "heat SUMMARY", "frees CANVAS", "map CANVAS"):
        assert name in order, (name, order)
    assert by_id(driver, "chip").is_displayed()


@promise
def every_control_has_a_name(driver):
    open_page(driver)
    choose_row(driver)
    assert chromium.nameless_controls(driver) == []
    unnamed = run(driver, "return [...document.querySelectorAll('canvas')].filter(c => !c.ariaLabel).length")
    assert unnamed == 0
