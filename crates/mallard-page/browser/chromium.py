"""Helpers of the browser tests of all pages, which run a headless Chromium and check promises.

A promise is a check function whose name states what it checks. `keep` calls promises and prints the
name and the outcome of each. The tests need Debian's chromium, chromium-driver and python3-selenium.
"""
import json
import sys
import traceback

from selenium import webdriver
from selenium.webdriver.chrome.service import Service


def start():
    options = webdriver.ChromeOptions()
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
    driver.set_script_timeout(60)
    return driver


def media(driver, scheme):
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def open_file(driver, page, width=1280, scheme="light", height=900):
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600})
    media(driver, scheme)
    driver.get(page.as_uri())


def run(driver, script, *arguments):
    return driver.execute_script(script, *arguments)


def luminance(driver, element, kind):
    """Returns the lightness of an element's computed colour, from 0 for black to 1 for white."""
    text = run(driver, f"return getComputedStyle(document.querySelector('{element}')).{kind}")
    numbers = text[text.index("(") + 1:-1].replace(",", " ").split()[:3]
    return sum(float(n) for n in numbers) / 3 / 255


def pixel(driver, x, y):
    """Returns red, green and blue of a pixel of the painted page."""
    return driver.execute_async_script("""const [data, x, y, done] = arguments;
        createImageBitmap(new Blob([Uint8Array.from(atob(data), c => c.charCodeAt(0))])).then((image) => {
          const canvas = new OffscreenCanvas(image.width, image.height);
          const context = canvas.getContext('2d');
          context.drawImage(image, 0, 0);
          done([...context.getImageData(x, y, 1, 1).data].slice(0, 3));
        });""", driver.get_screenshot_as_base64(), x, y)


def asked_of_network(driver, page):
    """Opens a page, and returns the addresses that the browser loads, apart from the page itself."""
    driver.get_log("performance")
    open_file(driver, page)
    asked = [json.loads(entry["message"])["message"] for entry in driver.get_log("performance")]
    addresses = [m["params"]["request"]["url"] for m in asked if m["method"] == "Network.requestWillBeSent"]
    return [address for address in addresses if address != page.as_uri() and not address.startswith("data:")]


def nameless_controls(driver):
    return run(driver, """return [...document.querySelectorAll('input, select, button')]
        .filter(c => !c.labels?.length && !c.textContent.trim() && !c.ariaLabel).map(c => c.outerHTML)""")


def is_too_wide(driver, width):
    """Returns whether the page scrolls sideways at a width, with all details open."""
    run(driver, "document.querySelectorAll('details').forEach(d => d.open = true)")
    inner, full = run(driver, "return [innerWidth, document.documentElement.scrollWidth]")
    assert inner == width, (width, inner)
    return full > width


def keep(driver, promises):
    """Checks promises, and returns how many failed."""
    failed = 0
    for check in promises:
        try:
            check(driver)
            run(driver, "localStorage.clear()")
            print("ok    ", check.__name__)
        except Exception:
            failed += 1
            print("FAILED", check.__name__)
            traceback.print_exc(file=sys.stdout)
    return failed


def take_screenshots(driver, page, folder, widths=(1280, 390), schemes=("light", "dark"), name="", prepare=lambda driver: None):
    """Writes screenshots that cover the whole page, each 1,800 pixels high. `prepare` may act on the page before."""
    folder.mkdir(parents=True, exist_ok=True)
    for width in widths:
        for scheme in schemes:
            open_file(driver, page, width, scheme)
            prepare(driver)
            height = run(driver, "return document.documentElement.scrollHeight")
            for number, top in enumerate(range(0, min(height, 16000), 1800)):
                driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
                    "width": width, "height": 1800, "deviceScaleFactor": 1, "mobile": False})
                run(driver, "scrollTo(0, arguments[0])", top)
                driver.save_screenshot(str(folder / f"{name}{width}-{scheme}-{number}.png"))
