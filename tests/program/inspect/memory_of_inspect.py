"""Files made to take much memory: commands that look take at most 64 MiB and four times what the file stores of its
header, and say by an error what is beyond a limit. A file that is only large is read within the same bound, which is
wider for three commands (docs/reliability.md, P7).
"""

import os
import struct
import subprocess
import sys
import tempfile

from mckpt_tests.bombs import INDEXES, MANY_TINY, METADATA, MIB, PICKLES, SAFETENSORS, apart, folder_of_ranks, indexed, written, zipped
from mckpt_tests.setting import MCKPT, SANITIZED

if SANITIZED:
    print("skipped: the sanitizers' own memory is counted")
    sys.exit(77)


def run(command, path):
    """Exit status, words, and the most memory in bytes."""
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen([MCKPT, *command.split(), path], stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        _, ended, used = os.wait4(child.pid, 0)
        out.seek(0)
        return os.waitstatus_to_exitcode(ended), out.read(1 << 22).decode("utf8", "replace"), used.ru_maxrss << 10


failed = []


def judge(name, path, header_bytes, statuses, words, commands, times=4):
    for command in commands:
        status, text, memory = run(command, path)
        most = 64 * MIB + times * header_bytes
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
    for name, (make, commands) in MANY_TINY.items():
        path = os.path.join(folder, "x.safetensors")
        apart(lambda: written(path, make()))
        with open(path, "rb") as f:
            header = struct.unpack("<Q", f.read(8))[0]
        for command, times in commands.items():
            judge(name, path, header, [0], "", [command.format(folder=folder, path=path)], times)
    for name, make in PICKLES.items():
        path = os.path.join(folder, "x.pt")
        apart(lambda: zipped(path, make()))
        judge(f"deflated {name}", path, os.path.getsize(path), [1, 3], "error[MC12", ["inspect", "verify"])
        apart(lambda: written(path, make()))
        judge(f"plain {name}", path, os.path.getsize(path), [0, 1, 3], "", ["inspect"])
    for name, (_, _, _, commands) in INDEXES.items():
        path = os.path.join(folder, name)
        judge(name, path, os.path.getsize(indexed(path, name)), [0, 1, 3], "", commands)
    for name in METADATA:
        path = os.path.join(folder, name)
        judge(name, path, os.path.getsize(folder_of_ranks(path, name)), [0, 1, 3], "", ["inspect", "verify", "ls"])

for what in failed:
    print("FAIL", what)
sys.exit(1 if failed else 0)
