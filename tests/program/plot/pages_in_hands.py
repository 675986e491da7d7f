"""Pages as people use them: a click or Enter goes into a module and Escape out again, as the page says; texts in tiles can be read,
light and dark; on a phone every column has its name and every line its chart and numbers; a diff of hashes fits the window."""
import json
import os
import re
import tempfile

from mckpt_tests.browser import Browser
from mckpt_tests.checks import expect, expect_equal, finish, skip
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

LEAST_CONTRAST = 4.5  # of small text, by WCAG 2
CRUMBS = "document.querySelector('.crumbs').textContent"
# [text, its colour, the colour of its tile] of every text in the chart of sizes
TEXTS = """[...document.querySelectorAll('svg.tree text')].map((t) =>
    [t.textContent, getComputedStyle(t).fill, getComputedStyle(t.parentNode.querySelector('.tile')).fill])"""
# The texts of elements that are not wholly inside of the window.
OUTSIDE = """(() => [...document.querySelectorAll('%s')].filter((e) => { const r = e.getBoundingClientRect();
    return r.width > 0 && (r.left < 0 || r.right > innerWidth + 0.5); }).map((e) => e.textContent || e.tagName))()"""
NAMES_OF_COLUMNS = "[...document.querySelectorAll('#map .marks span')].filter((s) => s.offsetParent).map((s) => s.textContent)"


def channels(colour):
    """"rgb(1, 2, 3)" or "color(srgb 0.1 0.2 0.3)" as numbers from 0 to 1."""
    numbers = [float(n) for n in re.findall(r"[0-9.]+(?:e-\d+)?", colour.removeprefix("color(srgb"))[:3]]
    return numbers if colour.startswith("color(srgb") else [n / 255 for n in numbers]


def luminance(colour):
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels(colour)]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def goes_in_and_out(browser):
    browser.open("model.html")
    outside = browser.run(CRUMBS)
    browser.run("document.querySelector('#sizes').scrollIntoView()")
    x, y, width, height = browser.run("(() => { const r = document.querySelector('svg.tree .zoom .zoom').getBoundingClientRect();"
                                      " return [r.x, r.y, r.width, r.height]; })()")
    browser.click(x + width / 2, y + height / 2)
    steps = browser.run("document.querySelectorAll('.crumbs button').length")
    expect(steps >= 1 and browser.run(CRUMBS) != outside, f"a click goes in: {browser.run(CRUMBS)}")
    for left in reversed(range(steps)):
        browser.press("Escape")
        expect_equal("steps after a click and Escape", [browser.run("document.querySelectorAll('.crumbs button').length")], [left])
    expect_equal("crumbs after a click and Escape", [browser.run(CRUMBS)], [outside])

    # By keys alone, into the second module where there are two; each Escape goes to the module that was left.
    browser.open("model.html")
    browser.run("document.querySelector('svg.tree [tabindex=\"0\"]').focus()")
    focused = "document.activeElement.getAttribute('aria-label')"
    way = []
    while browser.run("document.activeElement.matches('svg.tree .zoom')") and len(way) < 4:
        if browser.run("document.querySelectorAll('svg.tree [tabindex=\"0\"]').length") == 2:
            browser.press("Tab")
        way.append(browser.run(focused))
        browser.press("Enter")
    expect(len(way) == 4 and browser.run("document.querySelectorAll('.crumbs button').length") == 4, f"Enter goes in: {way}")
    expect(len(way) == 4 and way[2].startswith("model.layers.1,"), f"Tab goes to the second module: {way}")
    back = []
    while browser.run("document.querySelectorAll('.crumbs button').length") and len(back) < 9:
        browser.press("Escape")
        back.append(browser.run(focused))
    expect_equal("the modules that have the focus after Escape", back, way[::-1])
    expect_equal("crumbs after Enter and Escape", [browser.run(CRUMBS)], [outside])


def texts_can_be_read(browser, page, dark):
    for width in (390, 1280):
        browser.open(page, width=width, dark=dark)
        texts = browser.run(TEXTS)
        expect(len(texts) >= 8, f"{page} at {width}: {len(texts)} texts in tiles")
        for text, ink, tile in texts:
            ratio = contrast(ink, tile)
            expect(ratio >= LEAST_CONTRAST, f"{page} at {width}, dark {dark}: '{text}', {ink} on {tile}: {ratio:.2f} to 1")


def phones_show_all(browser):
    browser.open("optim.html", width=390)
    expect_equal("ranks", browser.run(NAMES_OF_COLUMNS), ["r0", "r1", "r2"])
    titles = browser.run("[...document.querySelectorAll('#map .block > summary b')].map((b) => b.textContent)")
    expect(len(titles) == 4 and len(set(titles)) == 4 and {"outside layers", "optimizer, outside layers"} <= set(titles), f"blocks: {titles}")
    expect_equal("beyond the edge", browser.run(OUTSIDE % "#values th, #values td, #values svg"), [])
    widths = browser.run("[...document.querySelectorAll('#values tr.pick svg')].map((s) => s.getBoundingClientRect().width)")
    expect(len(widths) > 20 and min(widths) > 90, f"charts of {min(widths)} to {max(widths)} pixels")
    expect(not browser.run("document.querySelectorAll('#values .dot').length"), "one layer is no line over layers")
    browser.open("ranks.html", width=390)
    names = browser.run(NAMES_OF_COLUMNS)
    expect(len(names) == 8 and names[:2] == ["r0", "r2"], f"every other one of 16: {names}")
    browser.open("model.html", width=390)
    expect_equal("files", browser.run(NAMES_OF_COLUMNS), ["f1", "f2"])


def diffs_fit(browser):
    browser.open("hashes.html", width=1400)
    expect_equal("beyond the edge", browser.run(OUTSIDE % "#tensors td"), [])
    shown = browser.run("document.querySelector('#tensors tbody td:last-child').textContent")
    expect(re.fullmatch(r"[0-9a-f]{12}\.\.\. \| [0-9a-f]{12}\.\.\.", shown), f"hashes: {shown}")
    for width in (390, 1400):
        browser.open("hashes.html", width=width)
        lefts = browser.run("[...document.querySelectorAll('#changes tr')].filter((r) => r.querySelector('td'))"
                            ".map((r) => r.querySelector('td').getBoundingClientRect().left)")
        expect(len(lefts) == 12 and len(set(lefts)) == 1, f"the first squares of lines, at {width}: {lefts}")


browser = Browser.find()
if browser is None:
    skip("no Chromium is installed")
with tempfile.TemporaryDirectory(prefix="mckpt_hands_") as folder, browser:
    os.chdir(folder)
    optim = os.path.join(DATA, "dcp", "fsdp_dtensor_optim")
    run_mckpt("plot", TINY_MODEL, "--stats", "-o", "model.html", "-q")
    run_mckpt("plot", optim, "--stats", "-o", "optim.html", "-q")
    run_mckpt("plot", TINY_MODEL, "--as", "fsdp", "--tp", "2", "--dp", "8", "-o", "ranks.html", "-q")
    run_mckpt("diff", os.path.join(DATA, "live_ranks", "tiny_qwen3_moe.tp2_rank1.json"), TINY_MODEL, "--as", "megatron", "--tp", "2",
              "--rank", "0", "--html", "hashes.html", "-q")
    goes_in_and_out(browser)
    for page in ("model.html", "optim.html"):
        for dark in (False, True):
            texts_can_be_read(browser, page, dark)
    phones_show_all(browser)
    diffs_fit(browser)
finish(80)
