"""The tests of what threads and ranks share (label `threads`) under ThreadSanitizer: none has a report. For scripts/trust, which does not build
the preset tsan: `cmake --preset tsan && cmake --build --preset tsan` does."""

import os
import re
import shutil
import subprocess
import time

from mckpt_tests.checks import expect, finish, skip
from mckpt_tests.figures import END, tell
from mckpt_tests.setting import SOURCE

BUILD = os.path.join(SOURCE, "build", "tsan")
REPORT = "WARNING: ThreadSanitizer: "
if not os.path.exists(os.path.join(BUILD, "mckpt")):
    skip("the preset tsan is not built: cmake --preset tsan && cmake --build --preset tsan")

# Without random addresses: the runtimes of older compilers take only some of those that newer kernels give.
front = ["setarch", "-R"] if shutil.which("setarch") else []
begin = time.time()
limit = None if END == float("inf") else max(60, END - begin)
# The tests find their own program; what scripts/trust says of the ordinary one is not for them.
env = {name: value for name, value in os.environ.items() if not name.startswith("MCKPT")}
try:
    words = [*front, "ctest", "--preset", "tsan", "-j", str(os.cpu_count())]
    text = subprocess.run(words, cwd=SOURCE, env=env, capture_output=True, text=True, errors="replace", timeout=limit).stdout
    ended = True
except subprocess.TimeoutExpired as e:
    text, ended = (e.stdout or b"").decode("utf-8", "replace"), False
results = re.findall(r"^ *\d+/\d+ Test +#\d+: (\S+) \.+[ *]*(Passed|Skipped|Failed|\S+)", text, re.M)
ran = [result for _, result in results if result != "Skipped"]
reports = text.count(REPORT)
print(text[-20000:])
expect(ended, "the tests did not end in time")
for name, result in results:
    expect(result in ("Passed", "Skipped"), f"{name}: {result}")
expect(reports == 0, f"{reports} reports")
reached = f"{ran.count('Passed'):,} of {len(ran):,} passed, {reports:,} reports" + ("" if ended else "; the time was over")
met = ended and len(ran) > 0 and ran.count("Passed") == len(ran) and reports == 0
tell("P17", "tests of threads and ranks under ThreadSanitizer", "no report", reached, met, time.time() - begin)
finish(30)
