"""Several starts of one conversion at once, into one place."""

import os
import subprocess

from mckpt_tests.folders import difference
from mckpt_tests.setting import MCKPT

REFUSED = ("error[MC3003]", "error[MC3004]")  # the place is taken; somebody is writing there


def race(run, places, overwrite):
    """Starts the run at each of the places at once, which are paths of one empty folder. "" or what is wrong after all have ended."""
    if overwrite:
        run.start(places[0])
    started = [
        subprocess.Popen(
            [MCKPT, *run.words(at), *(["--overwrite"] if overwrite else [])],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
        )
        for at in places
    ]
    texts = [(process.communicate(timeout=300)[1], process.returncode) for process in started]
    winners = sum(status == 0 for _, status in texts)
    wrong = [f"exit status {status}: {text[:300]}" for text, status in texts if status != 0 and not (status == 4 and text.startswith(REFUSED))]
    # Who begins after the first has ended may overwrite its result too.
    if winners != 1 and not (overwrite and winners > 1):
        return f"{winners} of {len(places)} ended well"
    left = [name for name in os.listdir(places[0]) if ".mckpt-" in name]
    differs = difference(places[0], run.reference)
    return wrong[0] if wrong else differs and f"the result differs: {differs}" or left and f"left over: {left}"
