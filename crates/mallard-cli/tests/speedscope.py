#!/usr/bin/python3
"""Opens a file in the page of speedscope, in a headless Chromium. `speedscope.py FOLDER FILE`

FOLDER contains the page, as dist/release of npm's package speedscope does. The checks (promises) run
in order, in one page. The program needs Debian's chromium, chromium-driver and python3-selenium.
"""
import base64
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "mallard-page/browser"))
from chromium import keep, run
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains

folder, file = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
content = json.loads(file.read_text())
active = content["profiles"][content["activeProfileIndex"]]


def start():
    """Starts a browser with WebGL in software, because speedscope only paints with WebGL."""
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--hide-scrollbars", "--window-size=1280,900",
                     "--use-angle=swiftshader", "--enable-unsafe-swiftshader"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)


def open_file(driver, scratch):
    """Opens the page as the program speedscope does, with a script that passes the file to the page."""
    script = Path(scratch) / "file.js"
    encoded = base64.b64encode(file.read_bytes()).decode()
    script.write_text(f"speedscope.loadFileFromBase64({json.dumps(file.name)}, {json.dumps(encoded)})")
    driver.get(f"{(folder / 'index.html').as_uri()}#localProfilePath={script}")


def text(driver):
    return run(driver, "return document.body.innerText")


def wait_for(driver, words):
    for _ in range(200):
        if words in text(driver):
            return
        time.sleep(0.1)
    raise AssertionError(f"'{words}' is not in: {text(driver)}")


def the_page_shows_the_profile_that_was_asked_for(driver):
    wait_for(driver, active["name"])


def the_page_has_a_profile_for_each_weight(driver):
    assert f"/{len(content['profiles'])}" in text(driver).replace(" ", ""), text(driver)


def the_flame_graph_is_painted(driver):
    assert run(driver, "return document.querySelectorAll('canvas').length") >= 1
    before = driver.get_screenshot_as_base64()
    ActionChains(driver).send_keys("2").perform()  # selects the view Left Heavy
    time.sleep(1)
    assert driver.get_screenshot_as_base64() != before


def the_table_of_functions_begins_with_the_largest(driver):
    sums = {}
    for sample, weight in zip(active["samples"], active["weights"]):
        name = content["shared"]["frames"][sample[-1]]["name"]
        sums[name] = sums.get(name, 0) + weight
    ActionChains(driver).send_keys("3").perform()  # selects the view Sandwich
    wait_for(driver, max(sums, key=sums.get))
    shown = text(driver)
    first = min((name for name in sums if name in shown), key=shown.index)
    assert sums[first] == max(sums.values()), (first, sums)


def the_page_reports_no_error(driver):
    assert "error" not in text(driver).lower(), text(driver)
    severe = [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
    assert not severe, severe


promises = (the_page_shows_the_profile_that_was_asked_for, the_page_has_a_profile_for_each_weight,
            the_flame_graph_is_painted, the_table_of_functions_begins_with_the_largest,
            the_page_reports_no_error)
driver = start()
with tempfile.TemporaryDirectory() as scratch:
    open_file(driver, scratch)
    failed = keep(driver, promises)
driver.quit()
sys.exit(failed != 0)
