"""`diff -q` ends at the first difference: of a tensor, a type, a file. Its exit status is the one of `diff`, and it reads a small part of two models whose first
tensor differs, with one thread: another may be done with the second before the first is looked at."""
import json
import os
import shutil
import struct
import subprocess
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, MCKPT, TINY_MODEL

BYTES = 64 << 20


def write(path, first):
    """A large sparse file, of which only the first tensor has values."""
    header = json.dumps({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                         "b": {"dtype": "F32", "shape": [BYTES // 4], "data_offsets": [4, 4 + BYTES]}}).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + struct.pack("<f", first))
        f.truncate(8 + len(header) + 4 + BYTES)
    return path


def bytes_read(*words):
    """The exit status, and how many bytes the process has read, which is asked of the system while the process has ended and is not yet waited for."""
    process = subprocess.Popen([MCKPT, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    with open(f"/proc/{process.pid}/io", encoding="ascii") as f:
        read = int(f.read().split("rchar: ")[1].split()[0])
    return process.wait(), read


with tempfile.TemporaryDirectory() as scratch:
    a, b, same = write(os.path.join(scratch, "a.safetensors"), 1), write(os.path.join(scratch, "b.safetensors"), 2), os.path.join(scratch, "c.safetensors")
    os.link(a, same)
    for x, y, want in ((a, b, 1), (b, a, 1), (a, same, 0)):
        (quick, less), (whole, more) = bytes_read("diff", x, y, "-q", "-j", "1"), bytes_read("diff", x, y, "-j", "1")
        expect(quick == whole == want, f"{x} {y}: {quick} {whole}")
        expect(want == 0 or less < more / 4, f"{x} {y}: {less} bytes of {more}")

    # Whatever decides, the status is the same as without -q.
    unlike = {"config": os.path.join(scratch, "config"), "file": os.path.join(scratch, "file"), "tensor": os.path.join(scratch, "tensor")}
    for folder in unlike.values():
        shutil.copytree(TINY_MODEL, folder)
    with open(os.path.join(unlike["config"], "config.json"), "r+") as f:
        config = json.load(f)
        config["rope_theta"] = 3
        f.seek(0), json.dump(config, f), f.truncate()
    open(os.path.join(unlike["file"], "tokenizer.json"), "w").write("{}")
    shard = os.path.join(unlike["tensor"], "model-00002-of-00002.safetensors")
    with open(shard, "r+b") as f:
        f.seek(os.path.getsize(shard) - 2)
        byte = f.read(1)
        f.seek(os.path.getsize(shard) - 2), f.write(bytes([byte[0] ^ 1]))
    run = os.path.join(scratch, "run")
    run_mckpt("convert", "hf-to-fsdp", TINY_MODEL, run, "--tp", "2", "-q")
    pairs = [(TINY_MODEL, TINY_MODEL), (run, TINY_MODEL), (os.path.join(DATA, "own_names", "fsdp2_app", "checkpoint"), TINY_MODEL)]
    pairs += [p for folder in unlike.values() for p in ((TINY_MODEL, folder), (folder, run), (run, folder))]
    pairs += [(os.path.join(DATA, "adapters", "plain"), TINY_MODEL), (os.path.join(DATA, "dcp", "variations", "hole"), os.path.join(DATA, "dcp", "variations", "hole"))]
    for x, y in pairs:
        for tolerance in ((), ("--atol", "1e9")):
            quick, whole = run_mckpt("diff", x, y, "-q", *tolerance), run_mckpt("diff", x, y, *tolerance)
            expect(quick.returncode == whole.returncode and quick.stdout == "", f"{x} {y} {tolerance}: {quick.returncode} {whole.returncode} {quick.stdout}")
finish(30)
