"""Names and values of a hostile checkpoint in every page, drawing and JSON that mckpt makes of it, in a real browser that may use the network: no
script of theirs runs, nothing is fetched, no window opens, also when everything on the page is clicked and searched. The payloads are
shown to be live first. Markdown is judged by judges/cards_are_inert.
"""

import http.server
import json
import os
import pickle
import struct
import tempfile
import threading
import time

from mckpt_tests.browser import Browser
from mckpt_tests.checks import expect, finish, skip
from mckpt_tests.figures import counted, some_of
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import TINY_MODEL

hits = []


class Listener(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        hits.append(self.path)
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Listener)
threading.Thread(target=server.serve_forever, daemon=True).start()
URL = f"http://127.0.0.1:{server.server_port}"
RUN = f"window.ran=1;top.ran=1;fetch('{URL}/fetched')"

# Each breaks out of another place: text, attributes, scripts, styles, comments, CDATA, JSON in a script, templates, links.
PAYLOADS = [
    f"<script>{RUN}</script>",
    f"</script><script>{RUN}</script>",
    f"<img src=x onerror=\"{RUN}\">",
    f"<img src={URL}/img>",
    f"\"><svg onload=\"{RUN}\">",
    f"' onmouseover='{RUN}' x='",
    f"\" autofocus onfocus=\"{RUN}\" tabindex=0 x=\"",
    f"</title><script>{RUN}</script>",
    f"</style><script>{RUN}</script>",
    f"</text><script>{RUN}</script>",
    f"]]><script>{RUN}</script>",
    f"--><script>{RUN}</script><!--",
    f"<!--<script>{RUN}",
    f"</textarea><script>{RUN}</script>",
    f"javascript:{RUN}",
    f"<a href=\"javascript:{RUN}\">a</a>",
    f"<iframe src=\"javascript:{RUN}\"></iframe>",
    f"<iframe srcdoc=\"<script>{RUN}</script>\"></iframe>",
    f"<object data=\"{URL}/object\"></object>",
    f"<link rel=stylesheet href={URL}/css>",
    f"<style>@import url({URL}/import);*{{background:url({URL}/background)}}</style>",
    f"*{{background:url({URL}/css2)}}",
    f"url({URL}/fill)",
    f"<meta http-equiv=refresh content=\"0;url={URL}/refresh\">",
    f"<base href={URL}/>",
    f"<use href=\"{URL}/use#a\"/>",
    f"<foreignObject><img src=x onerror=\"{RUN}\"></foreignObject>",
    f"<?xml-stylesheet href=\"{URL}/xsl\" type=\"text/xsl\"?>",
    f"<!DOCTYPE x [<!ENTITY e SYSTEM \"{URL}/entity\">]>&e;",
    f"${{{RUN}}}", f"`${{{RUN}}}`", f"{{{{constructor.constructor(\"{RUN}\")()}}}}",
    f"\\\"}});{RUN};//", f"\u2028{RUN}\u2029", f"\\u003cscript\\u003e{RUN}\\u003c/script\\u003e",
    f"%3Cscript%3E{RUN}%3C/script%3E", f"&lt;script&gt;{RUN}&lt;/script&gt;", f"&#60;script&#62;{RUN}&#60;/script&#62;",
    f"+ADw-script+AD4-{RUN}+ADw-/script+AD4-", "__proto__", "constructor", "toString", "</", "<!", "\x00<script>", "\x1b[31m",
]
NAMES = PAYLOADS + [f"model.layers.{i % 3}.{payload}.weight" for i, payload in enumerate(PAYLOADS)]


def write(path, names, value, metadata=None):
    entries = {name: {"dtype": "F32", "shape": [2], "data_offsets": [8 * i, 8 * i + 8]} for i, name in enumerate(names)}
    if metadata:
        entries["__metadata__"] = metadata
    header = json.dumps(entries).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + struct.pack("<2f", 1, value) * len(names))


def file_name(payload):
    """The payload as a file can be called."""
    return payload.replace("/", "\u2215").replace("\0", "").replace("\\", "")[:200] or "x"


def write_model(folder, value):
    """A model folder with hostile shard names, config, tokenizer and index; and Python objects beside it."""
    os.makedirs(folder)
    shards = {}
    for i in range(0, len(NAMES), 8):
        shard = file_name(PAYLOADS[i // 8]) + ".safetensors"
        write(os.path.join(folder, shard), NAMES[i : i + 8], value, {"format": PAYLOADS[i // 8], PAYLOADS[i // 8]: "x"})
        shards.update({name: shard for name in NAMES[i : i + 8]})
    with open(os.path.join(folder, "model.safetensors.index.json"), "w") as f:
        json.dump({"metadata": {"total_size": 8 * len(NAMES), PAYLOADS[1]: PAYLOADS[2]}, "weight_map": shards}, f)
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump({"model_type": PAYLOADS[0], "architectures": PAYLOADS[:4], "torch_dtype": PAYLOADS[2], PAYLOADS[4]: PAYLOADS[5]}, f)


def write_lying_plan(folder):
    """A model that a family knows, so that a plan is drawn of it, with hostile words in its config and beside it."""
    os.makedirs(folder)
    with open(os.path.join(TINY_MODEL, "config.json")) as f:
        config = json.load(f)
    config |= {"_name_or_path": PAYLOADS[0], "name": PAYLOADS[2], PAYLOADS[1]: PAYLOADS[4], "transformers_version": PAYLOADS[2]}
    with open(os.path.join(folder, "config.json"), "w") as f:
        json.dump(config, f)
    for name in os.listdir(TINY_MODEL):
        if name != "config.json":
            os.symlink(os.path.join(TINY_MODEL, name), os.path.join(folder, name))


def sources():
    """Checkpoints of several formats with the same names."""
    top = file_name(PAYLOADS[2])
    os.mkdir(top)
    single = os.path.join(top, file_name(PAYLOADS[0]) + ".safetensors")
    write(single, NAMES, 2, {payload: payload for payload in PAYLOADS})
    write(os.path.join(top, "other.safetensors"), NAMES[::2], 3, {"format": PAYLOADS[3]})
    write_model(os.path.join(top, "model" + file_name(PAYLOADS[6])), 4)
    pt = os.path.join(top, file_name(PAYLOADS[5]) + ".pt")
    made = run_mckpt("convert", "safetensors-to-pt", single, pt, "-q", "--no-sync")
    expect(made.returncode == 0, f"pt: {made.stderr[:500]}")
    out = [single, os.path.join(top, "other.safetensors"), os.path.join(top, "model" + file_name(PAYLOADS[6])), pt]
    try:
        import torch
        import torch.distributed.checkpoint as dcp

        dcp.save({**{name: torch.full((2,), 5.0) for name in NAMES if "\0" not in name}, "objects": PAYLOADS}, checkpoint_id=os.path.join(top, "dcp" + file_name(PAYLOADS[4])))
        out.append(os.path.join(top, "dcp" + file_name(PAYLOADS[4])))
        torch.save({"model": {name: torch.zeros(2) for name in NAMES}, "args": PAYLOADS, PAYLOADS[0]: PAYLOADS}, os.path.join(top, "training.pt"))
        out.append(os.path.join(top, "training.pt"))
    except ImportError:
        print("no torch: no folder of torch.distributed.checkpoint is made")
    with open(os.path.join(top, "evil.bin"), "wb") as f:
        pickle.dump({PAYLOADS[0]: PAYLOADS}, f)
    out.append(os.path.join(top, "evil.bin"))
    return out


def written_pages(all_sources):
    """The pages, drawings and JSON of all sources; each is a file of a plain name."""
    out = []

    def keep(name, result, statuses=(0, 1)):
        if os.path.exists(name) and os.path.getsize(name):
            out.append(name)
        else:
            expect(result.returncode not in statuses, f"{name}: nothing is written: {result.stderr[:300]}")

    for i, source in enumerate(all_sources):
        for name, words in ((f"{i}.html", ["plot", source, "--stats"]), (f"{i}.svg", ["plot", source]), (f"{i}_headers.html", ["plot", source])):
            keep(name, run_mckpt(*words, "-o", name, "-q"))
        for j, words in enumerate((["inspect", source, "--args"], ["ls", source, "--digest"], ["verify", source], ["stats", source])):
            name = f"{i}_{j}.json"
            with open(name, "w") as f:
                f.write(run_mckpt(*words, "--json").stdout)
            out.append(name)
    for i, (a, b) in enumerate(zip(all_sources, all_sources[1:] + all_sources[:1])):
        keep(f"diff_{i}.html", run_mckpt("diff", a, b, "--html", f"diff_{i}.html", "-q"))
    write_lying_plan("plan" + file_name(PAYLOADS[2]))
    keep("plan.html", run_mckpt("plot", "plan" + file_name(PAYLOADS[2]), "--as", "fsdp", "--tp", "2", "-o", "plan.html", "-q"), (0,))
    keep("plan.svg", run_mckpt("plot", "plan" + file_name(PAYLOADS[2]), "--as", "fsdp", "--tp", "2", "-o", "plan.svg", "-q"), (0,))
    for drawing in [name for name in out if name.endswith(".svg")]:  # as a part of another page, which may run scripts
        with open(drawing) as f, open(drawing + ".html", "w") as page:
            page.write("<!DOCTYPE html><meta charset=utf-8><body>" + f.read())
        out.append(drawing + ".html")
    return out


CLICK_ALL = """new Promise(async (done) => {
  const wait = (ms) => new Promise((r) => setTimeout(r, ms));
  for (const e of document.querySelectorAll('button, summary, .row, .tile, .zoom, th, td, [title], a, input, select')) {
    for (const kind of ['mouseover', 'mousemove', 'focus', 'click', 'keydown']) {
      try { e.dispatchEvent(new Event(kind, {bubbles: true})); } catch (error) { }
    }
  }
  const search = document.getElementById('search');
  for (const text of search ? ['<', 'script', '"', "'", 'img'] : []) {
    search.value = text;
    search.dispatchEvent(new Event('input', {bubbles: true}));
    await wait(120);
  }
  await wait(50);
  done(document.querySelectorAll('iframe, object, embed, img, link, base, a[href^=javascript]').length);
})"""


def ran(browser):
    return browser.run("String(window.ran)") != "undefined"


def look(browser, page):
    """"" or what a page has done that it should not."""
    hits.clear()
    browser.open(page)
    elements = 0 if page.endswith(".json") or page.endswith(".svg") else browser.run(CLICK_ALL)
    time.sleep(0.05)
    own = "file://" + os.path.abspath(page)
    wrong = ran(browser) and "a script of the checkpoint ran"
    wrong = wrong or hits and f"asked for {hits[:3]}"
    wrong = wrong or browser.requests != [own] and f"asked for {browser.requests[:3]}"
    wrong = wrong or "Page.javascriptDialogOpening" in browser.seen and "a dialog opened"
    wrong = wrong or "Page.windowOpen" in browser.seen and "a window opened"
    return wrong or elements and f"{elements} elements that load or link" or ""


browser = Browser.find()
if browser is None:
    skip("no Chromium is installed")
with tempfile.TemporaryDirectory(prefix="mckpt_hostile_") as folder, browser:
    os.chdir(folder)
    for payload in (PAYLOADS[0], PAYLOADS[2], PAYLOADS[3]):  # they are live, and the browser reaches the listener
        with open("live.html", "w") as f:
            f.write("<!DOCTYPE html><body>" + payload)
        hits.clear()
        browser.open("live.html")
        time.sleep(0.5)
        expect(ran(browser) == (payload != PAYLOADS[3]) and hits, f"the payload is not live: {payload} {hits}")
    pages = written_pages(sources())
    with counted("P18", "pages, drawings and JSON of hostile checkpoints in Chromium: no script runs, nothing is fetched", None) as count:
        count.also = f"{len(PAYLOADS)} payloads"
        for page in some_of(pages, 24):
            wrong = look(browser, page)
            count.one(expect(not wrong, f"{page}: {wrong}"))
finish(30)
