"""The data in a page of mckpt plot describe the checkpoint: unfolded, every tensor has the type, shape, bytes
and chunks that mckpt ls lists, of any format, also where layers and experts are drawn as one; and a plan
has the chunks of the checkpoint that the conversion then writes."""
import json
import os
import tempfile

from mckpt_tests import pages
from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL


def listed(path, *args):
    return json.loads(run_mckpt("ls", path, "--json", "-q", *args).stdout)["tensors"]


def drawn(path, *args):
    run = run_mckpt("plot", path, *args, "-o", page, "-q")
    expect(run.returncode == 0 and run.stdout == page + "\n", f"plot {path}: {run}")
    return pages.data(page)


def compare(what, made, want):
    got = pages.unfolded(made["map"])
    files = {column["label"]: i for i, column in enumerate(made["map"]["columns"])}
    expect_equal(f"{what}: names", sorted(got), sorted(t["name"] for t in want))
    for tensor in want:
        one = got[tensor["name"]]
        chunks = sorted((c["rank"] if made["map"]["by_rank"] else files[c["file"]], c["offsets"], c["sizes"]) for c in tensor["chunks"])
        expect_equal(f'{what}: {tensor["name"]}', [one["dtype"], one["shape"], one["bytes"], *one["chunks"]],
                     [tensor["dtype"], tensor["shape"], tensor["bytes"], *chunks])
    columns = [0] * len(made["map"]["columns"])
    for tensor in want:
        for c in tensor["chunks"]:
            # The items' bytes: records of archives, whose bytes ls lists, are larger.
            items = product(tensor["shape"])
            columns[c["rank"] if made["map"]["by_rank"] else files[c["file"]]] += tensor["bytes"] * product(c["sizes"]) // items if items else 0
    expect_equal(f"{what}: bytes of columns", [c["bytes"] for c in made["map"]["columns"]], columns)
    nodes, root = made["sizes"]["nodes"], made["sizes"]["root"]
    expect_equal(f"{what}: sizes", nodes[root][:3] if nodes else [0, 0, 0],
                 [sum(t["bytes"] for t in want), sum(product(t["shape"]) for t in want), len(want)])
    for node in nodes:  # a module is the sum of what is in it
        below = [nodes[n] for n in node[4][1::2]] if len(node) > 4 else []
        expect(not below or node[:3] == [sum(b[i] for b in below) for i in range(3)], f"{what}: {node} is not the sum of {below}")


def product(sizes):
    out = 1
    for size in sizes:
        out *= size
    return out


with tempfile.TemporaryDirectory(prefix="mckpt_plot_") as folder:
    page = os.path.join(folder, "page.html")
    for path in ("models/tiny_qwen3_moe", "dcp/uneven_4", "dcp/uneven_tp2dp2", "dcp/fsdp2", "dcp/hfsdp", "dcp/torch_dist_pp2", "dcp/variations/empty_chunks", "pt/ranks"):
        full = os.path.join(DATA, path)
        compare(path, drawn(full), listed(full))
    chosen = "*.experts.*"
    compare("some tensors", drawn(TINY_MODEL, chosen), listed(TINY_MODEL, chosen))

    # A plan is the checkpoint that is then written.
    grid = ["--tp", "2", "--ep", "4", "--dp", "4"]
    for kind, mode in (("fsdp", "hf-to-fsdp"), ("torch_dist", "to-mcore")):
        written = os.path.join(folder, kind)
        run_mckpt("convert", mode, TINY_MODEL, written, *grid, "--no-sync", "-q")
        plan = drawn(TINY_MODEL, "--as", kind, *grid)
        compare("plan " + kind, plan, listed(written))
        expect(plan["planned"] and not drawn(written)["planned"], "a plan says that it is one")
        experts = [row for row in plan["map"]["rows"] if row.get("stack")]
        expect(kind != "fsdp" or (len(experts) == 3 and all(pages.numbers(row["members"]) == [0, 1, 2, 3] for row in experts)), f"experts are not drawn as one: {experts}")
        layers = [block for block in plan["map"]["blocks"] if block["section"]]
        expect(kind != "fsdp" or (len(layers) == 1 and layers[0]["layers"] == [[0, 1]]), f"layers are not drawn as one: {layers}")
    # Stages with different numbers of layers.
    models = Models(only=["llama3"])
    llama = models.path("llama3")
    stages = ["--tp", "2", "--pp", "2", "--first-stage-layers", "1"]
    written = os.path.join(folder, "stages")
    run_mckpt("convert", "to-mcore", llama, written, *stages, "--no-sync", "-q")
    compare("stages", drawn(llama, "--as", "torch_dist", *stages), listed(written))
finish(400)
