"""Helpers of the tests of the report's page: pages, their content, and the actions of a reader."""
import json
import subprocess
import sys
from pathlib import Path

import chromium
import data
from chromium import run
from selenium.webdriver.common.by import By

mallard, folder = Path(sys.argv[1]), Path(sys.argv[2]).resolve()
recorded = Path(sys.argv[3]).resolve() if len(sys.argv) > 3 else None
PLOTS = ("time", "icicle", "heat", "frees", "map")
words = data.report()
pages = {}


def page_of(name, of):
    """Makes the page for some data, once."""
    if name not in pages:
        source, page = folder / f"{name}.json", folder / f"{name}.html"
        source.write_text(json.dumps(of() if callable(of) else of))
        subprocess.run([mallard, "report", source, "-o", page, "--force"], check=True, stdout=subprocess.DEVNULL)
        pages[name] = page
    return pages[name]


def open_page(driver, name="words", of=words, width=1280, scheme="light"):
    chromium.open_file(driver, page_of(name, of), width, scheme)
    wait_until(driver, "return performance.getEntriesByName('complete').length > 0")


def wait_until(driver, script):
    done = driver.execute_async_script("""const [script, done] = arguments;
        const test = new Function(script);
        const began = performance.now();
        const again = () => test() ? done(true) : performance.now() - began > 20000 ? done(false) : setTimeout(again, 5);
        again();""", script)
    assert done, script


def by_id(driver, name):
    return driver.find_element(By.ID, name)


def sites_shown(driver):
    return run(driver, """return [...document.querySelectorAll('#sites-list tbody tr:not(.spacer)')]
        .map(row => Number(row.dataset.site))""")


def titles(driver):
    return driver.find_elements(By.CSS_SELECTOR, "#sites-list thead th")


def title(driver, text):
    return next(t for t in titles(driver) if t.text.strip(" ↑↓") == text)


def choose_row(driver, place=0):
    row = driver.find_elements(By.CSS_SELECTOR, "#sites-list tbody tr:not(.spacer)")[place]
    site = int(row.get_attribute("data-site"))
    row.find_element(By.CSS_SELECTOR, "th").click()
    return site


def table_of(driver, plot):
    """Opens the table of a plot, and returns its rows as lists of texts."""
    return run(driver, """const details = document.querySelector(`#${arguments[0]} details.figures`);
        details.open = true;
        details.dispatchEvent(new Event('toggle'));
        return [...details.querySelectorAll('tr')].map(row => [...row.cells].map(cell => cell.textContent))""", plot)


def keys_of(driver, plot):
    """Returns the figures of a plot's table, as the page sorts them."""
    table_of(driver, plot)
    return run(driver, """return [...document.querySelectorAll(`#${arguments[0]} details.figures tbody tr`)]
        .map(row => [...row.cells].slice(1).map(cell => Number(cell.dataset.key)))""", plot)


def picture(driver, plot):
    """Returns the number of colours of a plot's canvas, and a checksum that distinguishes pictures."""
    return run(driver, """const canvas = document.querySelector(`#${arguments[0]} canvas`);
        const all = new Uint32Array(canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data.buffer);
        let sum = 0;
        for (const pixel of all) sum = (sum * 31 + pixel) >>> 0;
        return [new Set(all).size, sum]""", plot)


def stack_names(data, site):
    """Returns the functions of a site's stack, and their modules and files."""
    names, node = [], data["sites"]["node"][site]
    while node > 0:
        frame = data["stacks"]["frame"][node]
        names += [data["strings"][data["frames"][kind][frame]] for kind in ("func", "module", "file")
                  if data["frames"][kind][frame] >= 0]
        node -= data["stacks"]["up"][node]
    return names


def has_row(driver, site):
    return run(driver, "return document.querySelector(`#sites-list tr[data-site='${arguments[0]}']`) !== null", site)


def crumbs(driver):
    return [c.text for c in driver.find_elements(By.CSS_SELECTOR, "#crumbs button")]


def click_row(driver, row):
    """Clicks on the first frame of a row of the icicle, as a mouse does."""
    canvas = driver.find_element(By.CSS_SELECTOR, "#icicle canvas")
    x, y = run(driver, """arguments[0].scrollIntoView({block: 'start'});
        scrollBy(0, -100);
        const box = arguments[0].getBoundingClientRect();
        return [box.left + 12, box.top + arguments[1] * 24 + 12]""", canvas, row)
    for kind in ("mousePressed", "mouseReleased"):
        driver.execute_cdp_cmd("Input.dispatchMouseEvent", {"type": kind, "x": x, "y": y, "button": "left", "clickCount": 1})


def below_main(site):
    """Returns the function that main calls in the stack of a site."""
    names, node = [], words["sites"]["node"][site]
    while node > 0:
        names.append(words["strings"][words["frames"]["func"][words["stacks"]["frame"][node]]])
        node -= words["stacks"]["up"][node]
    return names[::-1][2:3]



promises = []


def promise(check):
    promises.append(check)
    return check
