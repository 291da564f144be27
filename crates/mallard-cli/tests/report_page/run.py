#!/usr/bin/python3
"""Tests the page of `mallard report` in a headless Chromium. `run.py MALLARD FOLDER [PAGE]`

The pages are made from the figures of data.py, which are made up. PAGE is the report of a recorded
program. Pages and screenshots are written to the directory FOLDER. If a check fails (chromium.py
calls checks promises), the exit status is 1. Times are printed; a time fails a check only if a
reader would have to wait.
"""
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "mallard-page/browser"))
import shared
import advice
import chromium
import choice
import first
import icicle
import looks
import odd
import plots
import sites


def choose_some(driver):
    """Chooses a site, zooms into the icicle, and highlights a function."""
    shared.choose_row(driver, 3)
    shared.click_row(driver, 4)
    shared.by_id(driver, "icicle-search").send_keys("parse")


def main():
    shared.folder.mkdir(parents=True, exist_ok=True)
    driver = chromium.start()
    try:
        failed = chromium.keep(driver, shared.promises)
        page = shared.page_of("words", shared.words)
        folder, widths = shared.folder / "screenshots", (1280, 768, 360)
        chromium.take_screenshots(driver, page, folder, widths)
        chromium.take_screenshots(driver, page, folder, widths[:1], name="chosen-", prepare=choose_some)
    finally:
        driver.quit()
    return failed > 0


sys.exit(main())
