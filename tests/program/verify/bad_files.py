"""Every case of test_data/bad_files: refused, warned of or accepted as it should be, by a message that names the file and
the matter. No command that looks at it crashes, hangs, runs what the file says, takes much memory, changes a file,
shows what another file holds or sends control characters to the terminal. A file that is refused is not
converted either.
"""
import concurrent.futures
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile

from mckpt_tests import bad_files
from mckpt_tests.bad_files import CONVERTERS
from mckpt_tests.setting import MCKPT, SANITIZED

MARKER = "MCKPT_PWNED"
MOST_SECONDS = 20
MOST_MEMORY_KIB = 1 << 20
MOST_ERROR_BYTES = 8192

COMMANDS = {
    "inspect": ["inspect", "--args"],
    "verify": ["verify", "-j2"],
    "ls": ["ls", "--digest", "-j2"],
    "as": ["ls", "--as", "megatron", "--digest", "-j2"],
}
# A model is read with its config by `ls --as`; what else shows only when data are converted shows to who reads them all.
JUDGES = {"inspect": "inspect", "verify": "verify", "convert": "ls"}
CRASHES = ("Sanitizer", "runtime error:", "terminate called", "Assertion `", "MC9901", "MC9902")


def run(args, cwd):
    limits = "" if SANITIZED else f"ulimit -v {MOST_MEMORY_KIB};"
    shell = f'ulimit -c 0; ulimit -f 1024; {limits} exec "$@"'
    env = {k: v for k, v in os.environ.items() if not k.startswith("MCKPT")}
    # Address space cannot be limited under ASan; single allocations and the resident size can.
    env["ASAN_OPTIONS"] = "max_allocation_size_mb=512:hard_rss_limit_mb=1024"
    env["UBSAN_OPTIONS"] = "print_stacktrace=1"
    return subprocess.run(["sh", "-c", shell, "sh", MCKPT, *args], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=MOST_SECONDS)


def snapshot(folder):
    """The contents of a folder, without following links."""
    entries = {}
    for root, folders, files in os.walk(folder):
        for name in folders + files:
            path = os.path.join(root, name)
            st = os.lstat(path)
            plain = os.path.isfile(path) and not os.path.islink(path)
            # Reading a folder or a link changes its access time alone; nothing else may change.
            entries[path] = (st.st_mode, st.st_ino, st.st_size, st.st_mtime_ns, pathlib.Path(path).read_bytes() if plain else None)
    return entries


def verdict(result):
    if result.returncode == 0:
        return "warn" if b"warning" in result.stderr else "accept"
    return "reject"


def faults_of(result, statuses=(0, 1, 3)):
    """Things that no command may do, whatever the file."""
    text = (result.stdout + result.stderr).decode("utf8", "replace")
    if result.returncode not in statuses:
        yield f"exit status {result.returncode}"
    if result.returncode >= 3 and b"error[MC" not in result.stderr:
        yield "no error is shown"
    yield from (f"the output has '{crash}'" for crash in CRASHES if crash in text)
    if any(c < " " and c not in "\n\t" for c in text):
        yield "control characters are shown"
    if "root:x:" in text:
        yield "another file's content is shown"
    if len(result.stderr) > MOST_ERROR_BYTES:
        yield f"{len(result.stderr)} bytes of errors"


def misjudged(case, result, path):
    got = verdict(result)
    if got not in case["verdicts"]:
        yield f"{got}, not {' or '.join(case['verdicts'])}"
    if got != "reject":
        return
    text = (result.stdout + result.stderr).decode("utf8", "replace")
    if pathlib.Path(path).stem not in text:
        yield "the error does not name the file"
    for name in (path, os.path.basename(path), pathlib.Path(path).stem):
        text = text.replace(name, "")
    if case["verdicts"][0] == "reject" and case["words"] and not any(w.lower() in text.lower() for w in case["words"]):
        yield f"the error has none of {case['words']}"


def conversion_faults(case, path, cwd):
    """A file that is wrong is not converted, one that is right is; nothing is left of what failed."""
    with tempfile.TemporaryDirectory(prefix="mckpt_bad_") as target:
        mode, *options = CONVERTERS[bad_files.kind(case)]
        result = run(["convert", mode, path, os.path.join(target, "out"), "--no-sync", "-j2", *options], cwd)
        written = os.listdir(target)
    yield from faults_of(result, (0, 3, 4))
    if case["verdicts"] == ["reject"] and result.returncode == 0:
        yield "converted"
    if "reject" not in case["verdicts"] and result.returncode != 0:
        yield "not converted: " + result.stderr.decode("utf8", "replace").split("\n")[0]
    if written != (["out"] if result.returncode == 0 else []):
        yield f"written: {written}"


def try_case(case, files):
    """Returns what is wrong with mckpt's answers, and whether the reader of such files is not built."""
    with tempfile.TemporaryDirectory(prefix="mckpt_bad_") as scratch:
        # Four folders deep: what climbs out lands in the scratch folder and is seen.
        cwd = os.path.join(scratch, "a/b/c/d")
        os.makedirs(cwd)
        copy, path = bad_files.copied(case, files, cwd)
        before = snapshot(scratch)
        judge = "as" if case["copy"].startswith("config/") else JUDGES[case["judged_by"]]
        wrong, missing = [], False
        for command in dict.fromkeys((judge, "inspect", "verify", "ls")):
            try:
                result = run([*COMMANDS[command], path], cwd)
            except subprocess.TimeoutExpired:
                wrong.append(f"{command}: still running after {MOST_SECONDS} s")
                continue
            missing |= b"error[MC0004]" in result.stderr
            faults = list(faults_of(result))
            if command == judge and not missing:
                faults += misjudged(case, result, copy)
            shown = " ".join(result.stderr.decode("utf8", "replace").split())[:200]
            wrong += [f"{command}: {fault} | {shown}" for fault in faults]
        if bad_files.kind(case) in CONVERTERS:
            wrong += [f"convert: {fault}" for fault in conversion_faults(case, path, cwd)]
        after = snapshot(scratch)
        if after != before:
            changed = sorted(p for p in before.keys() | after.keys() if before.get(p) != after.get(p))
            wrong.append(f"changed: {[os.path.relpath(p, scratch) for p in changed]}")
        return wrong, missing


def check_that_payloads_are_live(files):
    """A loader that runs pickles runs these; otherwise their test shows nothing."""
    with tempfile.TemporaryDirectory(prefix="mckpt_bad_") as scratch:
        here = os.getcwd()
        os.chdir(scratch)
        with open(os.path.join(files, "pt/leg_magic_exec.pt"), "rb") as f:
            pickle.load(f)
        os.chdir(here)
        return os.path.exists(os.path.join(scratch, MARKER))


def main():
    cases = bad_files.cases()
    failed = judged = 0
    without_reader = []
    with bad_files.unpacked() as files:
        if not check_that_payloads_are_live(files):
            sys.exit("FAIL: the payload does not run when it is unpickled")
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for case, (wrong, missing) in zip(cases, pool.map(lambda c: try_case(c, files), cases)):
                for fault in wrong:
                    print("FAIL", case["id"], f"({case['problem']}):", fault)
                failed += bool(wrong)
                judged += not missing
                if missing:
                    without_reader.append(case["id"])
    print(f"{judged} of {len(cases)} cases judged, {failed} failed; {len(without_reader)} need a reader that is not built here")
    if any(not id.startswith("h5_") for id in without_reader) or judged < 150:
        sys.exit(f"FAIL: not judged: {without_reader}")
    sys.exit(1 if failed else 0)


main()
