"""Tests of the first screen."""
import chromium
from shared import PLOTS, by_id, choose_row, open_page, page_of, promise, table_of, words
from chromium import run
from selenium.webdriver.common.by import By


@promise
def the_first_screen_says_what_the_program_did(driver):
    open_page(driver)
    assert by_id(driver, "command").text.startswith("./words --index")
    sentences = driver.find_elements(By.CSS_SELECTOR, "#sentences p")
    assert [s.text for s in sentences] == [s.replace("`", "") for s in words["sentences"]]
    bound = by_id(driver, "bound")
    assert bound.text == words["bound"] and bound.location["y"] < 700, bound.location
    assert "8.0 million" in by_id(driver, "figures").text or "million" in by_id(driver, "figures").text


@promise
def the_console_stays_empty_whatever_a_reader_does(driver):
    driver.get_log("browser")
    open_page(driver)
    for plot in PLOTS:
        table_of(driver, plot)
    choose_row(driver)
    by_id(driver, "theme").click()
    by_id(driver, "icicle-search").send_keys("parse")
    for radio in driver.find_elements(By.NAME, "weight"):
        run(driver, "arguments[0].click()", radio)
    entries = driver.get_log("browser")
    assert entries == [], entries


@promise
def nothing_is_loaded_from_the_network(driver):
    assert chromium.asked_of_network(driver, page_of("words", words)) == []
