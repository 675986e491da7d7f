"""Every kind of page and picture that the program writes, as a browser paints it, light and dark: the pixels have the colours.
Rectangles of drawings are looked at one by one; of pages, each part that has a colour has to be seen in it."""
import os
import re
import tempfile

from mckpt_tests.browser import Browser
from mckpt_tests.checks import expect, finish, skip
from mckpt_tests.png import Pixels
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

COLOURS = {  # of parts of models, of cells and of faults: on a light page, on a dark one
    "ink": ("#1f2328", "#f0f6fc"), "ground": ("#ffffff", "#0d1117"), "cell": ("#e6eaef", "#21262d"), "hole": ("#cf222e", "#f85149"),
    "twice": ("#8250df", "#bc8cff"), "embedding": ("#0e8a92", "#39c5cf"), "attention": ("#0969da", "#4493f8"), "mlp": ("#1a7f37", "#3fb950"),
    "experts": ("#d4610b", "#f0883e"), "router": ("#bf3989", "#db61a2"), "norm": ("#9a6700", "#d29922"),
    "optimizer": ("#57606a", "#8b949e"), "other": ("#818b98", "#656c76"),
}


def rgb(text):
    return tuple(int(text[i:i + 2], 16) for i in (1, 3, 5))


def colour(kind, dark):
    return rgb(COLOURS[kind][dark])


def near(a, b, most=3):
    return all(abs(x - y) <= most for x, y in zip(a, b))


def mixed(a, b, part):
    return tuple(round(x * part + y * (1 - part)) for x, y in zip(a, b))


def rectangles(drawing):
    """(x, y, width, height, class, fill) of each, in the order in which they are painted."""
    for words in re.findall(r"<rect ([^>]*)/>", drawing):
        of = dict(re.findall(r'([a-z-]+)="([^"]*)"', words))
        if not of["width"].endswith("%"):
            yield tuple(float(of.get(k, 0)) for k in ("x", "y", "width", "height")) + (of.get("class", ""), of.get("fill"))


def check_drawing(browser, name, dark):
    """Each rectangle in its middle, or where a text may be there, near its corner, if nothing later covers it."""
    with open(name) as file:
        drawing = file.read()
    browser.open(name, width=1280, dark=dark)
    expect(not browser.errors, f"{name}: {browser.errors}")
    picture = Pixels(browser.picture("svg", quick=True))
    every, seen, wrong = list(rectangles(drawing)), set(), []
    for i, (x, y, w, h, kind, fill) in enumerate(every):
        at = (x + 2.5, y + 2.5) if fill else (x + w / 2, y + h / 2)
        later = any(r[0] - 1 < at[0] < r[0] + r[2] + 1 and r[1] - 1 < at[1] < r[1] + r[3] + 1 for r in every[i + 1:])
        if w < 3 or h < 3 or later or at[1] >= picture.height or "copy" in kind:
            continue
        want = rgb(fill) if fill else colour(kind, dark)
        found = picture.at(*at)
        seen.add(kind or fill)
        if not near(found, want):
            wrong.append(f"{kind or fill} at {at}: found {found}, want {want}")
    expect(not wrong, f"{name}, dark {dark}: {len(wrong)} of {len(every)} rectangles: {wrong[:3]}")
    every_colour = picture.colours()
    ground = rgb("#ffffff") if "class=\"ground\"" not in drawing else colour("ground", dark)
    expect(every_colour[ground] > picture.width * picture.height // 5, f"{name}, dark {dark}: the ground, {every_colour.most_common(3)}")
    if "class=\"ground\"" in drawing:
        expect(any(near(c, colour("ink", dark), 40) for c in every_colour), f"{name}, dark {dark}: text")
    return seen


def check_page(browser, name, dark, element, kinds):
    """The element of a page has each of the colours in at least a dozen pixels, and most of it is ground."""
    picture = Pixels(browser.picture(element, most_height=360, quick=True))
    found = picture.colours()
    for kind, want in kinds.items():
        pixels = sum(n for c, n in found.items() if near(c, want))
        expect(pixels >= 12, f"{name} {element}, dark {dark}: {kind}, {pixels} pixels of {want}; most are {found.most_common(4)}")
    if element != "#sizes":
        expect(found.most_common(1)[0][0] == colour("ground", dark), f"{name} {element}, dark {dark}: the ground, {found.most_common(3)}")


def shown_parts(browser):
    """The parts of the model whose lines of the shard map are in the picture."""
    styles = browser.run("[...document.querySelectorAll('#map .row')].filter((r) => r.offsetParent && r.getBoundingClientRect().bottom - "
                         "document.querySelector('#map').getBoundingClientRect().top < 340)"
                         ".map((r) => (r.querySelector('svg.cells').closest('[style*=part]') || r).getAttribute('style')).join(' ')")
    return set(re.findall(r"var\(--([a-z]+)\)", styles or ""))


def check_pages(browser, dark):
    for name in ("ckpt", "hole"):
        browser.open(name + ".html", dark=dark)
        parts = shown_parts(browser)
        expect(len(parts) >= (2 if name == "ckpt" else 1), f"{name}.html: parts {parts}")
        kinds = {p: colour(p, dark) for p in parts} | {"cell": colour("cell", dark)}
        check_page(browser, name + ".html", dark, "#map", kinds | ({"hole": colour("hole", dark)} if name == "hole" else {}))
    browser.open("model.html", dark=dark)
    ground = colour("ground", dark)
    check_page(browser, "model.html", dark, "#sizes", {p: mixed(colour(p, dark), ground, 0.52) for p in ("embedding",)})
    check_page(browser, "model.html", dark, "#values", {"experts": mixed(colour("experts", dark), ground, 0.18)})
    browser.open("equal.html", dark=dark)
    check_page(browser, "equal.html", dark, "#changes", {"cell": colour("cell", dark)})
    browser.open("other.html", dark=dark)
    check_page(browser, "other.html", dark, "#changes", {"bad": colour("hole", dark)})


def write_pictures():
    """Returns the names of the pictures of rules."""
    run_mckpt("convert", "hf-to-fsdp", TINY_MODEL, "ckpt", "--tp", "2", "--ep", "4", "--dp", "4", "--no-sync", "-q")
    hole = os.path.join(DATA, "dcp", "variations", "hole")
    for source, options, names in ((TINY_MODEL, ["--stats"], ["model.html"]), ("ckpt", [], ["ckpt.html", "ckpt.svg"]), (hole, [], ["hole.html", "hole.svg"])):
        for name in names:
            done = run_mckpt("plot", source, "-o", name, "-q", *options)
            expect(os.path.exists(name), f"{name}: {done.stderr[-400:]}")
    run_mckpt("diff", TINY_MODEL, "ckpt", "--html", "equal.html", "-q")
    run_mckpt("diff", os.path.join(DATA, "dcp", "fsdp2"), os.path.join(DATA, "dcp", "megatron_fsdp_v2"), "--html", "other.html", "-q")
    rules = run_mckpt("mappings", "draw", "-q").stdout.split()
    for rule in rules:
        done = run_mckpt("mappings", "draw", rule, "--svg")
        with open(f"rule_{rule}.svg", "w") as file:
            file.write(done.stdout)
    return rules


browser = Browser.find()
if browser is None:
    # scripts/bootstrap gets one: on a machine of the CI it has to be there.
    expect(os.environ.get("CI") != "true", "no Chromium is installed on a machine of the CI")
    finish(1) if os.environ.get("CI") == "true" else skip("no Chromium is installed: scripts/bootstrap --torch")
with tempfile.TemporaryDirectory(prefix="mckpt_pictures_") as folder, browser:
    os.chdir(folder)
    rules = write_pictures()
    expect(len(rules) > 10, f"pictures of rules: {rules}")
    for dark in (False, True):
        seen = set()
        for name in ("ckpt.svg", "hole.svg"):
            seen |= check_drawing(browser, name, dark)
        expect(seen >= {"embedding", "attention", "experts", "router", "norm", "hole", "cell"}, f"dark {dark}: seen {seen}")
        check_pages(browser, dark)
    for name in rules:
        check_drawing(browser, f"rule_{name}.svg", False)
finish(80)
