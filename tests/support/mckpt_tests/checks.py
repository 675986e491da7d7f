"""The checks of a test, and its failures. Every script ends with finish(), which fails where anything was
wrong or too little was looked at; a script that cannot run here ends with skip()."""
import concurrent.futures
import importlib.util
import json
import os
import sys
import warnings

SHOWN = 20  # failures are printed as they are found, up to so many
failures = []
checked = 0


def fail(what):
    failures.append(what)
    if len(failures) <= SHOWN:
        print("FAIL", what)


def expect(ok, what):
    global checked
    checked += 1
    if not ok:
        fail(what)
    return ok


def expect_equal(what, got, want):
    """Lists in order; prints the first difference. Each item counts."""
    global checked
    checked += len(want)
    if got == want:
        return
    for i in range(max(len(got), len(want))):
        g, w = (side[i] if i < len(side) else None for side in (got, want))
        if g != w:
            return fail(f"{what}: line {i}: got {g}, want {w}")


def finish(least):
    """Ends the test; at least so many things must have been looked at."""
    print(f"{checked} checked, {len(failures)} failures")
    if path := os.environ.get("MCKPT_FIGURES"):  # for scripts/trust
        with open(path, "a") as f:
            f.write(json.dumps({"checked": checked, "failures": len(failures)}) + "\n")
    sys.exit(1 if failures or checked < least else 0)


def skip(reason):
    print("skipped:", reason)
    sys.exit(77)


def need(*packages):
    """Skips the test where a package is not there; one that is there and broken is an error. To be called before they are
    imported: what they would print is switched off."""
    missing = [name for name in packages if importlib.util.find_spec(name) is None]
    if missing:
        skip(f"{sys.executable} has no {', '.join(missing)}: scripts/bootstrap --torch")
    warnings.filterwarnings("ignore")
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if "torch" in packages:
        import torch
        torch.set_num_threads(1)


def in_parallel(work, items):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        for future in [pool.submit(work, *item) for item in items]:
            future.result()
