"""The data in the pages of `mckpt plot` and `mckpt diff --html`, taken apart again: every tensor with its chunks, as `mckpt ls
--json` lists them."""
import itertools
import json
import re
from html.parser import HTMLParser


class Parts(HTMLParser):
    """The elements of a page, and the text in its scripts, as an HTML parser sees them."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.elements, self.scripts, self.title, self.inside = [], [], "", None
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        self.elements.append((tag, dict(attributes)))
        self.inside = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self.inside = None

    def handle_data(self, text):
        if self.inside == "script":
            self.scripts[-1] += text
        elif self.inside == "title":
            self.title += text


def page(path):
    with open(path, encoding="utf-8") as f:
        return Parts(f.read())


def data(path):
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', open(path, encoding="utf-8").read(), re.S)
    return json.loads(found[1])


def numbers(ranges):
    return list(itertools.chain.from_iterable(range(a, b + 1) for a, b in ranges))


def unfolded(shard_map):
    """name -> {"dtype", "shape", "bytes", "chunks": [(column, offsets, sizes)]} of every tensor in a shard map."""
    tensors = {}
    for block in shard_map["blocks"]:
        every = numbers(block["layers"]) if block["section"] else [None]
        variants = itertools.chain.from_iterable(block["kinds"])
        for number, layer in ((v[0], layer) for v in variants for layer in (numbers(v[1]) if len(v) > 1 else every)):
            row = shard_map["rows"][number]
            front = "" if layer is None else f'{block["section"]}.{layer}.'
            members = numbers(row["members"]) if "members" in row else [None]
            for position, member in enumerate(members):
                name = front + (row["name"][0] if member is None else f'{row["name"][0]}{member}{row["name"][1]}')
                assert name not in tensors, name
                tensors[name] = {"dtype": row["dtype"], "shape": row["dims"], "chunks": sorted(chunks_of(row, position)),
                                 "bytes": row["bytes"] // len(members)}
    return tensors


def chunks_of(row, position):
    for box in row.get("boxes", []):
        column, _flags, *rest = box
        if row.get("stack"):
            first, count, *rest = rest
            if not first <= position < first + count:
                continue
        offsets, sizes = [0] * len(row["dims"]), list(row["dims"])
        for axis, offset, size in zip(row["axes"], rest[::2], rest[1::2]):
            offsets[axis], sizes[axis] = offset, size
        yield column, offsets, sizes
