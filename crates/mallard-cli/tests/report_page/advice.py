"""Tests how the page shows advice: the recommendations, the matrix of changes, and regions over time."""
import copy

import advice_data
import chromium
from shared import by_id, keys_of, open_page, picture, promise, table_of, words
from chromium import run
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

DRAWN = ("matrix", "lanes")
HOSTILE = "</script><img src=x onerror=alert(1)>"


def cards(driver):
    return driver.find_elements(By.CSS_SELECTOR, "#cards > .card")


def red_pixels(driver):
    """Counts the pixels of the lanes that have the colour of escaping blocks."""
    return run(driver, """const canvas = document.querySelector('#lanes canvas');
        const probe = document.createElement('i');
        probe.style.color = 'var(--escape)';
        document.body.append(probe);
        const wanted = getComputedStyle(probe).color.match(/\\d+/g).slice(0, 3).join();
        probe.remove();
        const all = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        let count = 0;
        for (let i = 0; i < all.length; i += 4) count += all.slice(i, i + 3).join() === wanted;
        return count""")


def choose_region(driver, place):
    run(driver, """const select = document.getElementById('lanes-of');
        select.value = arguments[0];
        select.dispatchEvent(new Event('change'))""", place)


@promise
def the_cards_are_the_first_section_and_the_first_is_open(driver):
    open_page(driver)
    assert driver.find_element(By.CSS_SELECTOR, "main > section").get_attribute("id") == "advice"
    assert by_id(driver, "verdict").text == "Something to change"
    assert by_id(driver, "advice-sentence").text == words["advice"]["sentence"]
    shown = cards(driver)
    assert [card.find_element(By.CSS_SELECTOR, "h3").text for card in shown] == [card["title"] for card in words["advice"]["cards"]]
    assert [card.get_attribute("open") is not None for card in shown] == [True, False]
    assert not by_id(driver, "no-advice").is_displayed()


@promise
def a_card_says_where_what_how_much_and_why(driver):
    open_page(driver)
    said = cards(driver)[0].text
    card = words["advice"]["cards"][0]
    for part in ["render_document (render.cpp:40)", card["strategy_words"], "25 % (24 to 27 %)", "22 % (20 to 24 %)", "3.0 % (2.0 to 4.0 %)",
                 "is not estimated", "18 to 34 %", "430 MiB of the heap at most instead of 412 MiB: loss", "120,000 frees", card["check"],
                 *card["evidence"], *card["hazards"], *card["why_not"]]:
        assert part in said, (part, said)


@promise
def a_prediction_stands_beside_what_was_measured(driver):
    open_page(driver)
    run(driver, "document.querySelectorAll('.card')[1].open = true")
    rows = [row.text.replace("\n", " ") for row in cards(driver)[1].find_elements(By.CSS_SELECTOR, ".savings > div")]
    assert rows[0] == "predicted before 8.0 to 16 %, by replay of the recording", rows
    assert rows[1] == "measured 12 % (11 to 13 %), measured in runs of the program", rows
    assert "mallard run --allocator mimalloc -- ./words" in cards(driver)[1].text


@promise
def what_verify_measured_stands_on_the_card_that_was_followed(driver):
    open_page(driver)
    run(driver, "document.querySelectorAll('.card')[1].open = true")
    followed, other = [card.text.replace("\n", " ") for card in cards(driver)]
    assert "the change measured 27 % (26 to 28 %), by mallard verify" in followed, followed
    assert "428 MiB resident at most instead of 412 MiB: loss" in followed, followed
    assert "the change measured" not in other and "memory measured" not in other, other


@promise
def the_reader_chooses_the_language_of_the_code(driver):
    open_page(driver)
    card = cards(driver)[0]
    code = lambda: card.find_element(By.CSS_SELECTOR, ".choices + pre").text
    assert code() == advice_data.CODE["cpp_mallard"], code()
    for radio in card.find_elements(By.CSS_SELECTOR, ".choices input"):
        run(driver, "arguments[0].click()", radio)
        assert code() == advice_data.CODE[radio.get_attribute("value")], code()
    rust = copy.deepcopy(words)
    rust["advice"]["cards"][0]["region"]["file"] = "render.rs"
    open_page(driver, "rust", rust)
    card = cards(driver)[0]
    assert code() == advice_data.CODE["rust"], code()


@promise
def the_matrix_has_a_point_for_each_measured_change(driver):
    open_page(driver)
    rows = words["advice"]["matrix"]
    measured = [row for row in rows if "saving" in row]
    sets = run(driver, """return Chart.getChart(document.querySelector('#matrix canvas')).data.datasets
        .map(set => [set.label, set.data.map(point => [point.x, point.y, point.xLow, point.xHigh, point.yLow, point.yHigh])])""")
    points = [point for _, data in sets[:-1] for point in data]
    assert len(points) == len(measured) and sets[-1][0] == "as it is" and sets[-1][1][0][:2] == [1, 1], sets
    for kind, (_, data) in zip(("strategy", "malloc", "variable"), sets):
        for row, point in zip((row for row in measured if row["kind"] == kind), data):
            wanted = [1 - row["memory_saving"], 1 - row["saving"], 1 - row["memory_high"], 1 - row["memory_low"], 1 - row["high"], 1 - row["low"]]
            assert all(abs(a - b) < 1e-9 for a, b in zip(point, wanted)), (row["name"], point, wanted)
    assert picture(driver, "matrix")[0] > 5
    lines = table_of(driver, "matrix")
    assert [line[0] for line in lines[1:]] == [row["label"] for row in rows]
    assert lines[-1][-1] == rows[-1]["dropped"] and lines[6][6] == "8.0 to 16 %", (lines[-1], lines[6])


@promise
def lanes_show_each_region_with_its_escapes_in_red(driver):
    for scheme in ("light", "dark"):
        open_page(driver, scheme=scheme)
        assert "No block outlives" in by_id(driver, "lanes-words").text and red_pixels(driver) == 0
        before = picture(driver, "lanes")
        assert before[0] > 4, before
        choose_region(driver, 1)
        of = words["regions"][1]
        assert picture(driver, "lanes") != before and red_pixels(driver) > 20, red_pixels(driver)
        assert f"{of['escapes']} blocks" in by_id(driver, "lanes-words").text.replace(",", ""), by_id(driver, "lanes-words").text
        assert "intern_word" in by_id(driver, "escape-sites").text
        some = red_pixels(driver)
        choose_region(driver, 2)
        assert red_pixels(driver) > some


@promise
def the_table_behind_the_lanes_is_that_of_the_region(driver):
    open_page(driver)
    for place, of in enumerate(words["regions"]):
        choose_region(driver, place)
        drawn = of["lanes"]
        columns = [drawn[key] for key in ("t0", "took", "blocks", "bytes", "escapes", "teardown")]
        assert keys_of(driver, "lanes") == [list(row) for row in zip(*columns)], of["name"]
        names = {line[0] for line in table_of(driver, "lanes")[1:]}
        assert len(names) == of["threads"] and names <= {"main", "reader", "indexer 1", "indexer 2", "writer", "cache"}, names


@promise
def arrow_keys_walk_from_instance_to_instance_and_thread_to_thread(driver):
    open_page(driver)
    choose_region(driver, 1)
    canvas = driver.find_element(By.CSS_SELECTOR, "#lanes canvas")
    run(driver, "arguments[0].focus()", canvas)
    seen = []
    for key in (Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT, Keys.ARROW_DOWN, Keys.ARROW_UP):
        ActionChains(driver).send_keys(key).perform()
        seen.append(by_id(driver, "lanes-said").text)
    assert len(set(seen)) >= 4 and all("block" in said and "after" in said for said in seen), seen
    assert len({said.split(", after")[0].split(", ")[-1] for said in seen[2:]}) > 1, seen


@promise
def a_card_leads_to_the_instances_of_its_region(driver):
    open_page(driver)
    choose_region(driver, 2)
    link = cards(driver)[0].find_element(By.CSS_SELECTOR, "a[href='#lanes']")
    run(driver, "arguments[0].click()", link)
    assert "render_document" in by_id(driver, "lanes-words").text
    assert run(driver, "return location.hash") == "#lanes"


@promise
def without_advice_the_page_names_the_command_and_has_no_matrix(driver):
    driver.get_log("browser")
    bare = {key: value for key, value in words.items() if key != "advice"}
    open_page(driver, "unadvised", {**bare, "regions": []})
    assert by_id(driver, "advice-command").text == "mallard advise words" and by_id(driver, "no-advice").is_displayed()
    assert cards(driver) == []
    for name in DRAWN:
        assert not by_id(driver, name).is_displayed()
        assert not driver.find_element(By.CSS_SELECTOR, f".controls a[href='#{name}']").is_displayed()
    open_page(driver, "regions-alone", bare)
    assert by_id(driver, "lanes").is_displayed() and not by_id(driver, "matrix").is_displayed()
    assert picture(driver, "lanes")[0] > 4 and driver.get_log("browser") == []


@promise
def nothing_to_gain_and_nothing_measured_are_said(driver):
    driver.get_log("browser")
    leave = copy.deepcopy(words)
    leave["advice"].update(verdict="leave", sentence="Leave the allocator of words as it is.", cards=[
        {"action": "leave", "title": "Leave it", "sentence": "Leave the allocator of words as it is.", "evidence": ["0.4 % at most"], "saving": {}, "code": {}}],
        matrix=[row for row in words["advice"]["matrix"] if "dropped" in row])
    open_page(driver, "leave", leave)
    assert by_id(driver, "verdict").text == "Nothing to change" and "0.4 % at most" in cards(driver)[0].text
    assert cards(driver)[0].find_elements(By.CSS_SELECTOR, ".savings") == []
    assert "no change was measured" in driver.find_element(By.CSS_SELECTOR, "#matrix .missing").text
    assert "1.3 % of the CPU time" in table_of(driver, "matrix")[1][-1]
    assert driver.get_log("browser") == []
    open_page(driver, "odd-advice", {"version": 1, "advice": {"cards": [{}], "matrix": [{}]}, "regions": [{"name": "f", "lanes": {}}]})
    assert len(cards(driver)) == 1 and driver.get_log("browser") == []


@promise
def hostile_names_in_the_advice_are_text(driver):
    driver.get_log("browser")
    advice, regions = advice_data.hostile(HOSTILE)
    open_page(driver, "hostile-advice", {**words, "advice": advice, "regions": regions})
    run(driver, "document.querySelectorAll('details').forEach(d => d.open = true)")
    choose_region(driver, 1)
    assert driver.find_elements(By.TAG_NAME, "img") == []
    for place in ("cards", "wish", "advice-notes", "lanes-words", "escape-sites", "lanes-of"):
        assert HOSTILE in run(driver, "return document.getElementById(arguments[0]).textContent", place), place
    assert HOSTILE in table_of(driver, "matrix")[1][0] and driver.get_log("browser") == []


@promise
def the_advice_follows_theme_and_width(driver):
    seen = []
    for scheme in ("light", "dark"):
        open_page(driver, scheme=scheme)
        seen.append([picture(driver, name)[1] for name in DRAWN])
    assert all(a != b for a, b in zip(*seen)), seen
    before = seen[1]
    by_id(driver, "theme").click()
    assert all(a != picture(driver, name)[1] for a, name in zip(before, DRAWN))
    run(driver, "localStorage.clear()")
    for width in (320, 360, 768, 1280):
        open_page(driver, width=width)
        choose_region(driver, 1)
        assert not chromium.is_too_wide(driver, width), width
        assert red_pixels(driver) > 5 and picture(driver, "matrix")[0] > 5, width
