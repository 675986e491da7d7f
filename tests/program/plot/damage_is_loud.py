"""Pictures of damaged checkpoints: a hole, and a file that is gone, are where they are in the page, in the drawing and in the exit
status. A picture that cannot be right to write is refused, and nothing is left."""
import os
import shutil
import tempfile

from mckpt_tests import pages
from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, TINY_MODEL

HOLE = os.path.join(DATA, "dcp", "variations", "hole")


def faults_of(made):
    return {(row["name"][0], f["kind"], tuple(f["offsets"]), tuple(f["sizes"])) for row in made["map"]["rows"] for f in row.get("faults", [])}


def refused(status, words, *args, before=None):
    run = run_mckpt("plot", *args, "-q")
    expect(run.returncode == status and words in run.stderr and not run.stdout, f"plot {args}: {run.returncode} {run.stderr}")


with tempfile.TemporaryDirectory(prefix="mckpt_plot_") as folder:
    os.chdir(folder)
    run = run_mckpt("plot", HOLE, "-o", "hole.html")
    made = pages.data("hole.html")
    expect(run.returncode == 1 and run.stdout == "hole.html\n" and "MC1304" in run.stderr, f"a hole: {run}")
    found = faults_of(made)
    expect(len(found) == 1 and next(iter(found))[1] == "hole", f"the hole: {found}")
    expect(made["map"]["faulty_tensors"] == 1 and any(b["faulty"] for b in made["map"]["blocks"]), "the block of the hole is marked")
    expect(any(not f["warning"] and "hole" in f["text"] for f in made["findings"]), f'no finding: {made["findings"]}')
    expect(run_mckpt("plot", HOLE, "-o", "hole.svg", "-q").returncode == 1, "a hole in SVG")
    drawing = open("hole.svg").read()
    lines = [line for line in drawing.splitlines() if 'class="hole"' in line]
    columns = len(made["map"]["columns"])
    expect_equal("red in the drawing: the whole tensor, every column, and the legend", [len(lines)], [1 + columns + 1])
    expect("1 tensor is not stored exactly once" in drawing, "the drawing says so")

    # The file of one rank is gone.
    shutil.copytree(os.path.join(DATA, "dcp", "uneven_4", "iter_0000010"), "lost")
    os.remove("lost/__1_0.distcp")
    run = run_mckpt("plot", "lost", "-o", "lost.html", "-q")
    made = pages.data("lost.html")
    kinds = {f[1] for f in faults_of(made)}
    expect(run.returncode == 1 and "lost" in kinds and made["map"]["columns"][1].get("lost") and not made["map"]["columns"][0].get("lost"), f"a lost file: {kinds}")
    red = [box for row in made["map"]["rows"] for box in row["boxes"] if box[1] & 2]
    expect(red and all(box[0] == 1 for box in red), f"what is lost is of rank 1: {red}")
    lost = sum(len([c for c in t["chunks"] if c[0] == 1]) > 0 for t in pages.unfolded(made["map"]).values())
    expect_equal("tensors that lost something", [made["map"]["faulty_tensors"]], [lost])

    # The refusals.
    open("notes.html", "w").write("<p>mine</p>")
    os.mkdir("folder.html")
    here = sorted(os.listdir())
    refused(2, "ends in .html or .svg", TINY_MODEL, "-o", "picture.png")
    refused(2, "--stats is for an HTML page", TINY_MODEL, "-o", "p.svg", "--stats")
    refused(2, "a plan has none", TINY_MODEL, "-o", "p.html", "--as", "fsdp", "--stats")
    refused(2, "only with --as fsdp", TINY_MODEL, "-o", "p.html", "--as", "torch_dist", "--strategy", "optim")
    refused(2, "only with --as torch_dist", TINY_MODEL, "-o", "p.html", "--as", "fsdp", "--pp", "2", "--vpp", "2")
    refused(2, "only with --as torch_dist", TINY_MODEL, "-o", "p.svg", "--as", "fsdp", "--memory", "--last-stage-layers", "1")
    refused(2, "--as", TINY_MODEL, "-o", "p.html", "--tp", "2")
    refused(4, "not a picture of mckpt", TINY_MODEL, "-o", "notes.html")
    refused(4, "something other than a file", TINY_MODEL, "-o", "folder.html")
    refused(3, "no such file", "nowhere", "-o", "p.html")
    refused(1, "no tensor", TINY_MODEL, "*.nothing", "-o", "p.html")
    refused(5, "", TINY_MODEL, "-o", "no/such/folder/p.html")
    run = run_mckpt("diff", TINY_MODEL, TINY_MODEL, "--html", "change.svg")
    expect(run.returncode == 2 and ".html" in run.stderr, f"diff --html: {run}")
    expect_equal("files", sorted(os.listdir()), here)
    expect(open("notes.html").read() == "<p>mine</p>", "a file of somebody else was replaced")
    # An earlier picture is replaced, as a whole.
    expect(run_mckpt("plot", TINY_MODEL, "-o", "lost.html", "-q").returncode == 0, "a picture replaces a picture")
    expect(pages.data("lost.html")["title"] == TINY_MODEL, "the new picture")
    expect_equal("files", sorted(os.listdir()), here)
finish(20)
