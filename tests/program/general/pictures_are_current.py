"""The drawings of the README are what scripts/readme_pictures draws today, of a real conversion and of the measured times. Screenshots
of pages (scripts/page_pictures) depend on the browser and its fonts, and are not compared."""

import os
import subprocess
import sys
import tempfile

from mckpt_tests.checks import expect, expect_equal, finish
from mckpt_tests.setting import MCKPT, SOURCE

kept = os.path.join(SOURCE, "docs", "pictures")
with tempfile.TemporaryDirectory(prefix="mckpt_pictures_") as folder:
    run = subprocess.run([sys.executable, os.path.join(SOURCE, "scripts", "readme_pictures"), folder], capture_output=True, text=True, env={**os.environ, "MCKPT": MCKPT})
    expect(run.returncode == 0, run.stderr)
    expect_equal("pictures", sorted(name for name in os.listdir(kept) if not name.endswith(".png")), sorted(os.listdir(folder)))
    for name in os.listdir(folder):
        with open(os.path.join(folder, name)) as drawn, open(os.path.join(kept, name)) as stored:
            expect(drawn.read() == stored.read(), f"docs/pictures/{name} is not current: scripts/readme_pictures draws it anew")
finish(4)
