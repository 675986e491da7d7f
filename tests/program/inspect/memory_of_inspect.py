"""Files made to take much memory: `inspect` and `ls` take at most 64 MiB and four times what the file stores of its
header, and say by an error what is beyond a limit. A file that is only large is read within the same bound.
"""

import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import zipfile

from mckpt_tests.setting import MCKPT, SANITIZED

if SANITIZED:
    print("skipped: the sanitizers' own memory is counted")
    sys.exit(77)
MIB = 1 << 20


def safetensors(header, data_bytes=0):
    text = header.encode()
    return struct.pack("<Q", len(text)) + text + bytes(data_bytes)


def entries(names):
    rows = ",".join(f'"{n}":{{"dtype":"U8","shape":[],"data_offsets":[{i},{i + 1}]}}' for i, n in enumerate(names))
    return safetensors("{" + rows + "}", len(names))


def parts(count, most, total):
    """Names of so many parts, each below `most` or a letter: no two layers are alike, and hardly two parts are shared."""
    r = random.Random(count)
    part = (lambda: str(r.randrange(most))) if most else (lambda: r.choice("abcdefghij"))
    return list({"a." + ".".join(part() for _ in range(count)) for _ in range(total // (3 * count + 50))})


def one_entry(fields, shape="[]"):
    return safetensors('{"a":{' + fields + '"dtype":"U8","shape":' + shape + ',"data_offsets":[0,1]}}', 1)


def pickled(body):
    return b"\x80\x02" + body + b"."


def listed(item, mib):
    return pickled(b"](" + item * (mib * MIB // len(item)) + b"e")


SAFETENSORS = {  # name: (what, exit status, words)
    "plain names": (lambda: entries([f"t{i}" for i in range(300000)]), 0, ""),
    "names with control bytes": (lambda: entries([f"\\u0001{i}" for i in range(300000)]), 0, "(46 more: -v)"),
    "names of layers": (lambda: entries([f"model.layers.{i}.mlp.gate.weight" for i in range(300000)]), 0, "x300000"),
    "empty tensors": (
        lambda: safetensors("{" + ",".join(f'"{i}":{{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}' for i in range(300000)) + "}"),
        0,
        "",
    ),
    "30 numbers": (lambda: entries(parts(30, 100, 4_000_000)), 0, ""),
    "60 numbers": (lambda: entries(parts(60, 100, 4_000_000)), 0, ""),
    "100 letters": (lambda: entries(parts(100, 0, 4_000_000)), 0, ""),
    "long dotted names": (lambda: entries(["a." * 30000 + str(i) for i in range(100)]), 0, ""),
    "metadata": (
        lambda: safetensors('{"__metadata__":{' + ",".join(f'"{i}":""' for i in range(1000000)) + "}}"),
        3,
        "more than 65536 entries",
    ),
    "dimensions": (lambda: one_entry("", "[" + "0," * 10000000 + "0]"), 3, "too many dimensions"),
    "unknown fields": (lambda: one_entry("".join(f'"{i}":1,' for i in range(700000))), 3, "too many unknown fields"),
}
PICKLES = {
    "integers": lambda: listed(b"K\x01", 60),
    "tuples": lambda: listed(b"K\x01\x85", 60),
    "lists": lambda: listed(b"]", 40),
    "dicts": lambda: listed(b"}", 40),
    "floats": lambda: listed(b"G" + struct.pack(">d", 1.5), 60),
    "texts": lambda: listed(b"X\x01\x00\x00\x00a", 60),
    "one text": lambda: pickled(b"X" + struct.pack("<I", 200 * MIB) + b"a" * (200 * MIB)),
    "objects": lambda: pickled(b"](ccollections\nOrderedDict\nq\x00)R" + b"h\x00)R" * (10 * MIB) + b"e"),
    "marks": lambda: pickled(b"(" * (60 * MIB)),
    # Compressed to less than the sixteen MiB that may be inflated: the interpreter has to see it.
    "small integers": lambda: listed(b"K\x01", 14),
    "small floats": lambda: listed(b"G" + struct.pack(">d", 1.5), 14),
    "small lists": lambda: listed(b"]", 14),
}


def apart(make):
    """Runs make() in a process of its own: what this one ever took counts as memory of the programs that it starts."""
    if (child := os.fork()) == 0:
        make()
        os._exit(0)
    if os.waitpid(child, 0)[1] != 0:
        sys.exit("FAILED: a file was not made")


def written(path, content):
    with open(path, "wb") as f:
        f.write(content)


def zipped(path, pickle_bytes):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as z:
        z.writestr("archive/data.pkl", pickle_bytes)
        z.writestr("archive/version", b"3\n")


def run(command, path):
    """Exit status, words, and the most memory in bytes."""
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen([MCKPT, command, path], stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        _, ended, used = os.wait4(child.pid, 0)
        out.seek(0)
        return os.waitstatus_to_exitcode(ended), out.read(1 << 22).decode("utf8", "replace"), used.ru_maxrss << 10


failed = []


def judge(name, path, header_bytes, statuses, words, commands):
    for command in commands:
        status, text, memory = run(command, path)
        most = 64 * MIB + 4 * header_bytes
        print(f"{name}, {command}: {memory / MIB:.1f} MiB of {most / MIB:.1f}, status {status}", flush=True)
        if memory > most or status not in statuses or (command == "inspect" and words not in text):
            failed.append(f"{name}, {command}: {memory} bytes of {most}, status {status}: {text[:300]}")


with tempfile.TemporaryDirectory(prefix="mckpt_memory_") as folder:
    for name, (make, status, words) in SAFETENSORS.items():
        path = os.path.join(folder, "x.safetensors")
        apart(lambda: written(path, make()))
        with open(path, "rb") as f:
            header = struct.unpack("<Q", f.read(8))[0]
        judge(name, path, header, [status], words, ["inspect"])
    for name, make in PICKLES.items():
        path = os.path.join(folder, "x.pt")
        apart(lambda: zipped(path, make()))
        judge(f"deflated {name}", path, os.path.getsize(path), [1, 3], "error[MC12", ["inspect", "verify"])
        apart(lambda: written(path, make()))
        judge(f"plain {name}", path, os.path.getsize(path), [0, 1, 3], "", ["inspect"])
    # An index that names as many files as tensors, none of which is there, or one file that lacks all that it names. With 300,000 names a
    # name that is kept twice is beyond the bound.
    for name, count, tensor, file, commands in (
        ("absent shards", 300_000, "t{}", "s{}.safetensors", ["inspect", "verify"]),
        ("absent tensors", 100_000, "tensor.{}.weight", "m.safetensors", ["inspect", "verify", "ls"]),
    ):
        path = os.path.join(folder, name)
        os.mkdir(path)
        index = os.path.join(path, "model.safetensors.index.json")
        weights = lambda: {tensor.format(i): file.format(i) for i in range(count)}  # noqa: E731
        apart(lambda: written(index, json.dumps({"metadata": {"total_size": 1}, "weight_map": weights()}).encode()))
        if name == "absent tensors":
            written(os.path.join(path, "m.safetensors"), entries(["a"]))
        judge(name, path, os.path.getsize(index), [0, 1, 3], "", commands)

for what in failed:
    print("FAIL", what)
sys.exit(1 if failed else 0)
