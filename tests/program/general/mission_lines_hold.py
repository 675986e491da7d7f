"""docs/mission.md: every line of its tables holds. The scripts of the page make its checkpoints; then the command of each line runs,
and shows the text that the line says it shows. The table of sums at the head of the page counts its lines.

usage: mission_lines_hold.py [LINE...]      runs these lines, and prints what their commands print
"""
import collections
import concurrent.futures
import importlib.util
import os
import re
import signal
import subprocess
import sys

from mckpt_tests.checks import expect, finish
from mckpt_tests.folders import scratch
from mckpt_tests.mission_page import VERDICTS, fault, read
from mckpt_tests.setting import BUILD, MCKPT, SANITIZED, SOURCE

LENGTHS = {"S0": 26, "S1": 26, "S2": 37, "S3": 18, "S4": 25, "C": 15}
# A command with this word needs these files beside the program, or these packages of Python; one with planted/ needs checkpoints that
# torch made for the test.
PACKAGES = {"--logits": ["torch", "transformers"]}
NEEDS = {"mpirun ": ["libmckpt_mpi.so", "libmckpt_torch.so"], "roundtrip ": ["libmckpt_torch.so"], "hdf5": ["mckpt-hdf5"]}
PROGRAMS = {
    "mpirun": 'PATH=${PATH#*:} exec "%s/scripts/mpirun" "$@"' % SOURCE,
    "judge": 'name=$1; shift; exec "%s" "%s/tests/judges/$name.py" "$@"' % (sys.executable, SOURCE),
    **{name: 'exec "%s" -m mckpt_tests.%s "$@"' % (sys.executable, module) for name, module in (("draw", "drawn"), ("plant", "planted"))},
}
UNABLE, LONGEST = 77, 200


def environment(folder):
    """The programs of the page in front of the path, and mckpt behind them."""
    shims = os.path.join(folder, "bin")
    os.mkdir(shims)
    for name, script in PROGRAMS.items():
        with open(os.path.join(shims, name), "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n" + script + "\n")
        os.chmod(f.name, 0o755)
    kept = {name: os.environ[name] for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "TMPDIR") if name in os.environ}
    return {**kept, "PATH": ":".join([shims, os.path.dirname(MCKPT), os.environ["PATH"]]), "HOME": folder, "LC_ALL": "C.UTF-8",
            "MCKPT": MCKPT, "MCKPT_PYTHON": sys.executable, "PYTHONPATH": os.path.join(SOURCE, "tests", "support"), "PYTHONDONTWRITEBYTECODE": "1"}


def run(command, work, env):
    """Its exit status, 124 where it does not end, and what it printed. A command that hangs is ended with its children."""
    process = subprocess.Popen(["bash", "-euo", "pipefail", "-c", command], cwd=work, env=env, text=True, errors="replace", start_new_session=True,
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        output = process.communicate(timeout=LONGEST)[0]
        return process.returncode, output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return 124, process.communicate()[0]


def can_run(command, work):
    missing = [file for word, files in NEEDS.items() if word in command for file in files if not os.path.exists(os.path.join(BUILD, file))]
    missing += [name for word, names in PACKAGES.items() if word in command for name in names if importlib.util.find_spec(name) is None]
    return not missing and ("planted/" not in command or os.path.isdir(os.path.join(work, "planted")))


def check_head(text, lines):
    """All lines are there, each with a verdict and a command that shows it, and the table of sums counts them."""
    expect(list(lines) == [f"{seed}.{i}" for seed, n in LENGTHS.items() for i in range(1, n + 1)], "a line is missing, or in another place")
    counts = collections.Counter((name.split(".")[0], line.verdict) for name, line in lines.items())
    sums = [[seed, sum(counts[seed, v] for v in VERDICTS), *(counts[seed, v] for v in VERDICTS)] for seed in LENGTHS]
    sums.append(["all", *(sum(row[i] for row in sums) for i in range(1, 6))])
    shown = [[cell.strip() for cell in row.split("|")[1:-1]] for row in text.splitlines() if re.match(r"\| (S\d|C|all) \| \d", row)]
    expect(shown == [[str(cell) for cell in row] for row in sums], f"the sums of the lines are {sums}")
    for name, line in lines.items():
        expect(line.verdict in VERDICTS, f"{name}: no verdict is called {line.verdict}")
        expect(bool(line.command), f"{name} has no command")
        if line.verdict == "not run":
            expect("performance.md" in line.reason, f"{name}: says nowhere why and where it was run")
        else:
            expect(not line.reason and (line.texts or line.exit), f"{name}: nothing that the command must show: {line.reason}")


def main():
    if SANITIZED:
        print("skipped: its commands say the same without sanitizers")
        sys.exit(UNABLE)
    text, scripts, lines = read()
    check_head(text, lines)
    chosen = {name: lines[name] for name in sys.argv[1:]} or {name: line for name, line in lines.items() if line.verdict != "not run"}
    with scratch() as folder:
        env, work = environment(folder), os.path.join(folder, "work")
        os.mkdir(work)
        for name in os.listdir(SOURCE):
            if name == ".ci" or not name.startswith(".") and name != "build":
                os.symlink(os.path.join(SOURCE, name), os.path.join(work, name))
        for script in scripts:
            status, output = run(script, work, env)
            if not expect(status in (0, UNABLE), f"exit status {status} of this script:\n{script}{output}"):
                finish(1)
        commands = dict.fromkeys(line.command for line in chosen.values() if can_run(line.command, work))
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            answers = dict(zip(commands, pool.map(lambda command: run(command, work, env), commands)))
        left_out = []
        for name, line in chosen.items():
            status, output = answers.get(line.command, (UNABLE, ""))
            if sys.argv[1:]:
                print(f"{name}: {line.sentence}\n$ {line.command}\n{output}", end="")
            if status == UNABLE:
                left_out.append(name)
                continue
            what = fault(line, status, output)
            expect(not what, f"{name}: {what}\n     $ {line.command}\n{output[:3000]}")
    print(f"{len(chosen) - len(left_out)} lines were run; left out, because a module or a library of Python is not here: {' '.join(left_out) or 'none'}")
    finish(1 if sys.argv[1:] else 400)


main()
