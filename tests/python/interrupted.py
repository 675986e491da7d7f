"""Ctrl-C during a conversion to one file: KeyboardInterrupt in the program, nothing published, and the next run makes it anew. The signal is a
real one; `faulty_io` makes the work slow."""
import json
import os
import signal
import struct
import subprocess
import sys
import tempfile
import unittest

from mckpt_tests.package import PACKAGE, run
from mckpt_tests.setting import FAULTY_IO

PROGRAM = """
import sys, mckpt
started = []
def show(progress):
    if progress.phase == "write" and progress.done and not started:
        started.append(print("writing", flush=True))
try:
    mckpt.convert(sys.argv[1], sys.argv[2], to="torch-file", threads=1, progress=show)
    print("done")
except KeyboardInterrupt as stopped:
    print("interrupted", *getattr(stopped, "__notes__", []))
    sys.exit(9)
"""
BYTES = 1 << 28
SLOW = {"LD_PRELOAD": FAULTY_IO, "FAULTY_IO": "pwrite:20:SLOW"}


def sparse(path):
    header = json.dumps({"w": {"dtype": "F32", "shape": [BYTES // 4], "data_offsets": [0, BYTES]}}).encode()
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header)
        f.truncate(8 + len(header) + BYTES)


class Interrupted(unittest.TestCase):
    def test_ctrl_c(self):
        with tempfile.TemporaryDirectory() as folder:
            source, target = f"{folder}/big.safetensors", f"{folder}/big.pt"
            sparse(source)
            environment = {**os.environ, "PYTHONPATH": PACKAGE, **SLOW}
            child = subprocess.Popen([sys.executable, "-c", PROGRAM, source, target], env=environment, stdout=subprocess.PIPE, text=True)
            self.assertEqual(child.stdout.readline(), "writing\n")
            child.send_signal(signal.SIGINT)
            output, _ = child.communicate(timeout=60)
            self.assertEqual(child.returncode, 9, output)
            self.assertTrue(output.startswith("interrupted"), output)
            if sys.version_info >= (3, 11):
                self.assertIn("it starts anew", output)
            self.assertFalse(os.path.exists(target))

            import mckpt

            seen = []
            self.assertEqual(mckpt.convert(source, target, to="torch-file", progress=seen.append).output, target)
            self.assertEqual((seen[-1].done, seen[-1].bytes > 0), (seen[-1].bytes, True))  # what was there before is done, too
            self.assertTrue(mckpt.verify(target, source, progress=False).equal)


if not os.path.exists(FAULTY_IO):
    print(f"skipped: there is no {FAULTY_IO}")
    sys.exit(77)
run()
