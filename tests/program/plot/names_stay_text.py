"""Names of tensors are a stranger's: whatever they are, the page has the elements that it should have, the names arrive in its data
byte for byte, and the drawing is well-formed XML. The same for the page of a diff, and for paths."""
import json
import os
import struct
import tempfile
import xml.etree.ElementTree

from mckpt_tests import pages
from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.program import run_mckpt

NAMES = ["</script><script>alert(1)</script>", "<!--<script>", "a\"b'c&amp;d", "]]>", "tab\there", "line\nbreak", "bell\u0007", "nul\u0000byte",
         "\u202eright to left", "line\u2028separator", "e\u0301\U0001f600", "model.layers.0.</style><img src=x onerror=alert(1)>.weight",
         "model.layers.0.experts.*.literal", "model.layers.0.experts.7.</title>", "\\u003c", "${x}`", "{{x}}"]


def write(path, names, value):
    entries = {name: {"dtype": "F32", "shape": [2], "data_offsets": [8 * i, 8 * i + 8]} for i, name in enumerate(names)}
    header = json.dumps(entries).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + struct.pack("<2f", 1, value) * len(names))


def tags(page):
    return [tag for tag, _ in page.elements]


with tempfile.TemporaryDirectory(prefix="mckpt_plot_") as folder:
    os.chdir(folder)
    write("plain.safetensors", [f"t{i}" for i in range(len(NAMES))], 2)
    write("odd.safetensors", NAMES, 2)
    odd = "<b>&'\".safetensors"
    write(odd, NAMES, 3)
    for path, out in (("plain.safetensors", "plain.html"), (odd, "odd.html")):
        run = run_mckpt("plot", path, "-o", out, "--stats", "-q")
        expect(run.returncode == 0, f"{path}: {run}")
    plain, page = pages.page("plain.html"), pages.page("odd.html")
    expect_equal("elements of the page", tags(page), tags(plain))
    expect_equal("scripts", [len(page.scripts), page.scripts[1]], [2, plain.scripts[1]])
    expect_equal("title", [page.title], [odd + " - mckpt plot"])
    made = json.loads(page.scripts[0])
    expect_equal("names", sorted(pages.unfolded(made["map"])), sorted(NAMES))
    expect_equal("title in the data", [made["title"]], [odd])
    expect("<" not in page.scripts[0].replace("\\u003c", ""), "a bare < in the data")
    policy = [attributes["content"] for tag, attributes in page.elements if attributes.get("http-equiv") == "Content-Security-Policy"]
    expect(len(policy) == 1 and "default-src 'none'" in policy[0], f"the policy: {policy}")
    expect(not any(set(attributes) & {"src", "href"} for _, attributes in page.elements), "the page loads something")

    run_mckpt("plot", odd, "-o", "odd.svg", "-q")
    tree = xml.etree.ElementTree.parse("odd.svg")
    expect({element.tag.split("}")[1] for element in tree.iter() if isinstance(element.tag, str)} == {"svg", "title", "style", "rect", "text"}, "elements of the drawing")
    words = " ".join(element.text or "" for element in tree.iter())
    expect("alert(1)" in words and "\u202e" not in words and "\\xe2\\x80\\xaeright" in words, "names in the drawing")

    run = run_mckpt("diff", odd, "odd.safetensors", "--html", "diff.html", "-q")
    expect(run.returncode == 1, f"diff: {run}")
    write("plain2.safetensors", [f"t{i}" for i in range(len(NAMES))], 3)
    run_mckpt("diff", "plain2.safetensors", "plain.safetensors", "--html", "plain_diff.html", "-q")
    page, plain = pages.page("diff.html"), pages.page("plain_diff.html")
    expect_equal("elements of the page of a diff", tags(page), tags(plain))
    expect_equal("rows", sorted(r["name"] for r in json.loads(page.scripts[0])["rows"]), sorted(NAMES))
finish(50)
