"""Names of tensors and files, config entries and folders in the Markdown card are text and nothing else, as markdown-it reads it
with HTML, tables and addresses switched on; with chromium, the page that comes out asks for nothing and runs nothing.
"""

import html.parser
import json
import os
import shutil
import struct
import subprocess

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.folders import scratch
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import TINY_MODEL

need("markdown_it")
from markdown_it import MarkdownIt  # noqa: E402

folder = scratch()
HOSTILE = [
    "<script>document.title='ran'</script>",
    "<img src=x onerror=\"document.title='ran'\">",
    "![i](http://127.0.0.1:9/i.png)",
    "[l](javascript:document.title='ran')",
    "http://127.0.0.1:9/bare",
    "www.example.org",
    "<http://127.0.0.1:9/auto>",
    "someone@example.org",
    "&lt;b&gt;",
    "\\|<img src=y>",
    "\\\\|<img src=y>",
    "`|<img src=z>",
    "`` `|`<img src=z>",
    "|<b>|",
    "a|b",
    "`code`",
    "*bold* _it_ __u__ ~~s~~",
    "# title",
    "[ref]: http://127.0.0.1:9/r",
    "[ref]",
    "$x$",
    "@someone",
    "line\nbreak <b>",
    "-->",
    "<!--",
    "```",
    " ` ",
    "---",
    "+ item",
]


def written(path, names, metadata):
    header = {"__metadata__": metadata}
    for i, name in enumerate(names):
        header[name] = {"dtype": "U8", "shape": [1], "data_offsets": [i, i + 1]}
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + bytes(len(names)))


def made(name):
    top = os.path.join(folder.name, name)
    os.mkdir(top)
    written(os.path.join(top, "model.safetensors"), HOSTILE, {"format": "<b>pt</b>"})
    with open(os.path.join(top, "config.json"), "w") as f:
        json.dump({"model_type": HOSTILE[1], "architectures": [HOSTILE[0], HOSTILE[2]]}, f)
    for i, hostile in enumerate(HOSTILE):
        if "\\" in hostile:  # refused in names of files
            continue
        with open(os.path.join(top, f"{i} {hostile}".replace("/", ":")), "w") as f:
            f.write("x")
    return top


class Tags(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.seen = {}
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.seen.setdefault(tag, []).append(dict(attributes))


HARMLESS = {"h1", "h2", "p", "table", "thead", "tbody", "tr", "th", "td", "ul", "li", "code", "pre"}


def judge(what, page):
    with open(page) as f:
        text = f.read()
    # The first line is mckpt's own comment; what an HTML reader would take for more ends there.
    expect(text.startswith("<!-- mckpt.card/1 -->\n"), what)
    shown = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
    for tag, attributes in Tags(shown).seen.items():
        expect(tag in HARMLESS, f"{what}: a live <{tag}>: {attributes[:3]}")
        for each in attributes:
            expect(set(each) <= {"class", "style"}, f"{what}: <{tag} {each}>")
    rows = shown.count("<tr>")
    expect(all(row.count("<td>") in (0, 2, 4) for row in shown.split("<tr>")), f"{what}: cells that end early in {rows} rows")
    expect("a|b" in shown, f"{what}: a bar is shown")
    return shown


top = made("<i>folder<b> ![x](javascript:1)")
page, sums = os.path.join(folder.name, "c.md"), os.path.join(folder.name, "c.sha256")
result = run_mckpt("verify", top, "--report", page, "--report", sums)
expect(os.path.exists(page), f"{result.returncode}: {result.stderr[:500]}")
pages = {"verify": judge("verify", page)}
with open(sums) as f:
    first = f.readline()
expect(first.startswith("# mckpt.card/1 of ") and first.count("\n") == 1, first)

# A plain model's card has no code spans: escaping costs readers nothing.
result = run_mckpt("verify", TINY_MODEL, "--report", page)
with open(page) as f:
    plain = f.read()
expect("model.layers.0.self_attn.q_proj.weight |" in plain, plain[:500])

browser = shutil.which("chromium")
if browser:
    for what, shown in pages.items():
        name = os.path.join(folder.name, "page.html")
        with open(name, "w") as f:
            f.write("<!doctype html><meta charset=utf-8><title>quiet</title>" + shown)
        got = subprocess.run(
            [browser, "--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000", "--dump-dom", "file://" + name],
            capture_output=True, text=True, timeout=100, check=False).stdout
        expect("<title>quiet</title>" in got, f"{what}: a script ran, or nothing was shown: {got[:300]}")
finish(300)
