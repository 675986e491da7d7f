"""Whatever takes more than half a second says so on a terminal: work that reads or writes data with bytes and the time that is left,
other work with the time that it has taken. Nothing remains of that on the screen; --progress none and -q show nothing.
"""
import json
import os
import re
import struct
import sys
import tempfile

from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import FAULTY_IO, PRELOADS
from mckpt_tests.terminal import on_terminal

if not PRELOADS:
    print("skipped: faulty_io cannot be loaded before the runtime of the sanitizers")
    sys.exit(77)

MEGABYTE = 1 << 20
SLOWLY = {"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": "pread:4:SLOW"}  # four megabytes a second
failures = 0


def check(right, what):
    global failures
    if not right:
        failures += 1
        print("FAIL", what)


def safetensors(path, tensors):
    header, at = {}, 0
    for name, items in tensors:
        header[name] = {"dtype": "U8", "shape": [items // 1024, 1024] if items >= 1024 else [items], "data_offsets": [at, at + items]}
        at += items
    text = json.dumps(header).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text + bytes(at))


def drawn(text):
    """The lines that were drawn over each other, and what is left at the end."""
    parts = re.sub(r"\x1b\[[0-9;]*m", "", text).split("\r\x1b[K")
    return parts[1:], parts[-1]


def shows(args, pattern, env=SLOWLY, stdout=None, statuses=(0,)):
    status, text = on_terminal(*args, cwd=folder, env=env, stdout=stdout)
    lines, last = drawn(text)
    check(status in statuses, f"{args}: exit status {status}: {text[-300:]!r}")
    check(any(re.match(pattern, line) for line in lines), f"{args}: shows {lines[:4]}")
    check("memory" not in last, f"{args}: progress is left on the screen: {last!r}")


def shows_nothing(args, env=SLOWLY):
    _, text = on_terminal(*args, cwd=folder, env=env)
    check("memory" not in text, f"{args}: shows {text[:200]!r}")


with tempfile.TemporaryDirectory() as folder:
    data = os.path.join(folder, "data.safetensors")
    safetensors(data, [("big", 4 * MEGABYTE), *((f"w.{i}", MEGABYTE // 4) for i in range(16))])
    safetensors(os.path.join(folder, "quick.safetensors"), [("w", 16)])
    safetensors(os.path.join(folder, "names.safetensors"), [(f"a.rather.long.name.of.a.tensor.{i}", 1) for i in range(12000)])

    def with_bytes(name):
        return rf"{name}  .* of .*  \d+ %  .*/s  ETA \d+:\d\d  memory "

    shows(["ls", "data.safetensors", "--digest", "-j", "1"], with_bytes("digest"))
    shows(["stats", "data.safetensors", "-j", "1"], with_bytes("stats"))
    shows(["verify", "data.safetensors", "-j", "1"], with_bytes("verify"))
    shows(["convert", "safetensors-to-pt", "data.safetensors", "new.pt", "-j", "1", "--no-sync"], with_bytes("write"))
    answer = os.path.join(folder, "answer")
    shows(["cat", "data.safetensors", "big[:, :]"], with_bytes("cat"), stdout=answer)
    check(len(open(answer).readlines()) == 4096, "cat: the answer is not whole")
    # How much there is to read in headers is not known before.
    headers = {**SLOWLY, "FAULTY_IO": "pread:1:SLOW"}
    for command in ("ls", "inspect", "layout"):
        shows([command, "names.safetensors"], rf"{command}  0:0\d  memory ", env=headers, stdout=answer, statuses=(0, 3))
    for quiet in (["--progress", "none"], ["-q"]):
        shows_nothing(["stats", "data.safetensors", *quiet])
        shows_nothing(["ls", "names.safetensors", *quiet], env=headers)
    # Quick work shows nothing at all, and neither does a pipe.
    shows_nothing(["stats", "quick.safetensors"], env={})
    piped = run_mckpt("stats", "data.safetensors", cwd=folder, env=SLOWLY)
    check(piped.returncode == 0 and piped.stderr == "", f"a pipe gets {piped.stderr!r}")
print(f"{failures} failures")
sys.exit(bool(failures))
