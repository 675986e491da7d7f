"""The pages in a real browser, where one is installed: scripts run without a complaint, nothing is asked of a network, nothing is
wider than a phone, searching finds, and the shapes are drawn in light and dark."""
import os
import tempfile

from mckpt_tests.browser import Browser
from mckpt_tests.checks import expect, finish, skip
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

browser = Browser.find()
if browser is None:
    skip("no Chromium is installed")
with tempfile.TemporaryDirectory(prefix="mckpt_plot_") as folder, browser:
    os.chdir(folder)
    run_mckpt("plot", TINY_MODEL, "--stats", "-o", "model.html", "-q")
    run_mckpt("plot", os.path.join(DATA, "dcp", "variations", "hole"), "-o", "hole.html", "-q")
    run_mckpt("convert", "hf-to-fsdp", TINY_MODEL, "ckpt", "--tp", "2", "--ep", "4", "--dp", "4", "--no-sync", "-q")
    run_mckpt("plot", "ckpt", "-o", "ckpt.html", "-q")
    run_mckpt("diff", TINY_MODEL, "ckpt", "--html", "equal.html", "-q")
    run_mckpt("diff", os.path.join(DATA, "dcp", "fsdp2"), os.path.join(DATA, "dcp", "megatron_fsdp_v2"), "--html", "other.html", "-q")
    for page in sorted(name for name in os.listdir() if name.endswith(".html")):
        for width in (390, 1280):
            for dark in (False, True):
                browser.open(page, width=width, dark=dark)
                expect(not browser.errors, f"{page}: {browser.errors}")
                expect(browser.requests == ["file://" + os.path.abspath(page)], f"{page}: {browser.requests}")
                wide = browser.run("document.documentElement.scrollWidth")
                expect(wide <= width, f"{page} is {wide} wide at {width}")
                ground = browser.run("getComputedStyle(document.body).backgroundColor")
                expect(ground == ("rgb(13, 17, 23)" if dark else "rgb(255, 255, 255)"), f"{page}: {ground}")
    browser.open("ckpt.html")
    lines = browser.run("document.querySelectorAll('#map .row').length")
    expect(lines == 3 + 10, f"{lines} lines of the map, for three tensors outside of layers and ten kinds in two layers that are alike")
    expect(browser.run("document.querySelectorAll('#sizes .tile').length") > 10, "tiles")
    browser.run("document.querySelector('#map .row').click()")
    expect("whole" not in browser.run("document.querySelector('#map .detail').textContent") and browser.run("document.querySelectorAll('#map .detail tbody tr').length") == 1, "a line opens to its boxes")
    browser.run("document.querySelector('#sizes .zoom').dispatchEvent(new Event('click'))")
    expect(browser.run("document.querySelectorAll('.crumbs button').length") == 1, "a click goes into a module")
    browser.run("document.getElementById('search').value = 'linear_proj'; document.getElementById('search').dispatchEvent(new Event('input'))")
    browser.run("new Promise((done) => setTimeout(done, 300))")
    expect(browser.run("[...document.querySelectorAll('#map .row')].filter((r) => r.offsetParent).length") == 1, "lines that are found")
    browser.open("hole.html")
    expect(browser.run("document.querySelectorAll('.row.faulty .hole').length") > 0 and "not stored exactly once" in browser.run("document.body.textContent"), "the hole is loud")
finish(80)
