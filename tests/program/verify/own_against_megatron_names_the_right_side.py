"""`verify` of a checkpoint that has the model's own names against one of Megatron, and the other way round: damage, neighbours and
settings are named of the side that they are of, in both orders."""
import json
import os
import shutil
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import TINY_MODEL


def changed(run, scratch, name, change):
    copy = os.path.join(scratch, name)
    shutil.copytree(run, copy)
    change(os.path.join(copy, "release"))
    return copy


def cut(folder):
    path = os.path.join(folder, "__1_0.distcp")
    os.truncate(path, os.path.getsize(path) - 200)


def flip(folder):
    path = os.path.join(folder, "__0_0.distcp")
    with open(path, "r+b") as f:
        f.seek(os.path.getsize(path) // 2)
        byte = f.read(1)
        f.seek(-1, 1)
        f.write(bytes([byte[0] ^ 0x55]))


def files_of(answer):
    return {(f["file"] if os.path.isabs(f.get("file", "")) else os.path.join(answer["path"], f.get("file", ""))) for f in answer["findings"] if f.get("file")}


with tempfile.TemporaryDirectory() as scratch:
    own, run = os.path.join(scratch, "own"), os.path.join(scratch, "run")
    expect(run_mckpt("convert", "to-dcp", TINY_MODEL, own, "-q").returncode == 0, "to-dcp")
    expect(run_mckpt("convert", "to-mcore", TINY_MODEL, run, "--tp", "2", "-q").returncode == 0, "to-mcore")
    # How the run is damaged, the exit status, the check that fails with the run as source and as tested side.
    cases = [("whole", lambda folder: None, 0, None, None), ("cut", cut, 1, "source", "path"), ("flipped", flip, 1, "source", "path"),
             ("no marker", lambda folder: os.remove(os.path.join(folder, "metadata.json")), 1, None, "files"),
             ("neighbour", lambda folder: shutil.copytree(own, os.path.join(folder, "neighbour")), 0, None, None)]
    for name, change, status, as_source, as_tested in cases:
        other = changed(run, scratch, name.replace(" ", "_"), change)
        for tested, source, check, wrong in ((own, other, as_source, as_tested), (other, own, as_tested, as_source)):
            done = run_mckpt("verify", tested, "--against", source, "--json")
            answer = json.loads(done.stdout)
            told = f"{name}: {os.path.basename(tested)} against {os.path.basename(source)}: {done.stdout[:1500]}"
            expect(done.returncode == status, told)
            checks = {c["name"] for c in answer["checks"] if c["status"] != "pass"}
            expect(check is None or check in checks, told)
            expect(wrong is None or wrong == check or wrong not in checks, told)
            expect((name == "neighbour" and tested == other) == any(u["path"].endswith("neighbour") for u in answer["unread"]), told)
            for file in files_of(answer):
                expect(os.path.relpath(file, other).startswith("..") is False, f"{told}: {file}")
    for setting, tested, source in (("--source-tp", own, run), ("--path-tp", run, own)):
        done = run_mckpt("verify", tested, "--against", source, setting, "4")
        expect(done.returncode != 0 and f"{setting} contradicts" in done.stderr, done.stderr)
finish(50)
