"""The steps of action.yml do on test_data what GitHub would have them do: each `run` block with the environment that its inputs give."""
import json
import os
import re
import shutil
import subprocess
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.github_yaml import load_file
from mckpt_tests.setting import MCKPT, SOURCE, TINY_MODEL

ACTION = load_file("action.yml")
# As GitHub starts `shell: bash`.
SHELL = ["bash", "--noprofile", "--norc", "-eo", "pipefail"]


def value_of(text, inputs):
    """A text with the values of inputs in place of ${{ inputs.NAME }}; of other contexts nothing is known here."""
    return re.sub(r"\$\{\{ (?:inputs\.([\w-]+)|github\.action_repository) \}\}", lambda m: inputs[m[1]] if m[1] else "owner/mckpt", text)


def runs_for(step, inputs):
    """The condition of a step; only comparisons of an input with a text are known."""
    if "if" not in step:
        return True
    name, operator, text = re.fullmatch(r"inputs\.([\w-]+) (!=|==) '(.*)'", step["if"]).groups()
    return (inputs[name] == text) == (operator == "==")


def act(first=1, **given):
    """Carries out the steps from `first` on, up to the first that fails: exit statuses by name, what was printed, outputs."""
    inputs = {name: given.get(name.replace("-", "_"), entry.get("default", "")) for name, entry in ACTION["inputs"].items()}
    statuses, printed = {}, ""
    with tempfile.TemporaryDirectory() as temp:
        files = {name: os.path.join(temp, name) for name in ("GITHUB_OUTPUT", "GITHUB_PATH")}
        for step in ACTION["runs"]["steps"][first:]:
            if not runs_for(step, inputs):
                continue
            script = os.path.join(temp, "step.sh")
            with open(script, "w", encoding="utf-8") as f:
                f.write(step["run"])
            env = {**os.environ, **files, "PATH": ":".join([given.get("programs", ""), os.path.dirname(MCKPT), os.environ["PATH"]]), "RUNNER_TEMP": temp,
                   "GITHUB_ACTION_PATH": SOURCE, "GITHUB_REPOSITORY": "else/where", **{name: value_of(text, inputs) for name, text in step["env"].items()}}
            run = subprocess.run([*SHELL, script], env=env, cwd=work, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120)
            statuses[step["name"]] = run.returncode
            printed += run.stdout
            if run.returncode != 0:
                break
        outputs = {name: open(path, encoding="utf-8").read() for name, path in files.items() if os.path.exists(path)}
        left = [name for name in os.listdir(temp) if name.startswith("mckpt-") and os.path.isdir(os.path.join(temp, name))]
        expect(not left or any(statuses.values()), f"left behind: {left}")
    return statuses, printed, outputs


def expect_act(what, wanted, texts=(), **given):
    statuses, printed, outputs = act(**given)
    expect(list(statuses.values()) == wanted, f"{what}: {statuses}, wanted {wanted}\n{printed}")
    for text in texts:
        expect(text in printed, f"{what}: nothing says {text!r}:\n{printed}")
    return outputs


def damaged(name, change):
    """A copy of the tiny model, with one file changed."""
    folder = os.path.join(work, name)
    shutil.copytree(TINY_MODEL, folder)
    change(os.path.join(folder, "model-00001-of-00002.safetensors"))
    return folder


def flip(path):
    with open(path, "r+b") as f:
        f.seek(-300, os.SEEK_END)
        byte = f.read(1)[0]
        f.seek(-300, os.SEEK_END)
        f.write(bytes([byte ^ 1]))


with tempfile.TemporaryDirectory() as work:
    kept = os.path.join(work, "kept report.json")
    outputs = expect_act("a sound model with a round trip", [0, 0], ["sound", "equal"], path=TINY_MODEL, round_trip="--tp 2 --ep 4", report=kept)
    expect(outputs["GITHUB_OUTPUT"] == f"report={kept}\n", f"output: {outputs}")
    with open(kept, encoding="utf-8") as f:
        expect(json.load(f)["ok"], "the report is not that of verify")
    expect_act("a comparison", [0, 0], ["equal"], path=TINY_MODEL, against=TINY_MODEL, assets=TINY_MODEL)

    cut = damaged("a cut model", lambda path: os.truncate(path, 4000))
    expect_act("a cut file", [1], ["::error title=MC1101::model-00001-of-00002.safetensors", "NOT sound"], path=cut, round_trip="--tp 2")
    expect_act("no file", [3], ["::error title=MC1001::"], path=os.path.join(work, "none"))
    other = damaged("other", flip)
    expect_act("another value", [0, 1], ["::error title=MC1010::", "NOT equal"], path=other, against=TINY_MODEL)
    expect_act("a grid that does not fit", [0, 4], ["MC2007"], path=TINY_MODEL, round_trip="--tp 3")
    expect_act("an input is data", [0, 2], path=TINY_MODEL, round_trip="--tp 2 $(touch harm)")
    expect(not os.path.exists(os.path.join(work, "harm")), "the text of an input was carried out")

    # Names of files that nobody read, one of which would begin a command of GitHub.
    loose = damaged("loose", lambda path: None)
    with open(os.path.join(loose, "x\n::error::y.txt"), "w", encoding="utf-8"):
        pass
    _, printed, _ = act(path=loose)
    expect(not re.search(r"^::error", printed, re.M) and "::notice title=not read::" in printed, f"a name begins a command:\n{printed}")
    expect_act("strict", [1], ["::error title=not read::"], path=loose, strict="true")
    expect_act("strict, and all is read", [0], path=TINY_MODEL, strict="true")

    # Installing, with a pip that notes what it is asked for.
    programs = os.path.join(work, "programs")
    os.mkdir(programs)
    with open(os.path.join(programs, "python3"), "w", encoding="utf-8") as f:
        f.write('#!/bin/sh\n[ "$1 $2" = "-m venv" ] || exit 9\nmkdir -p "$3/bin"\n'
                f'printf \'#!/bin/sh\\nfor word; do :; done; echo "$word" >"{work}/asked"\\n\' >"$3/bin/pip"\nchmod +x "$3/bin/pip"\n')
    os.chmod(f.name, 0o755)
    version = re.search(r"^project\(mckpt VERSION ([0-9.]+)", open(os.path.join(SOURCE, "CMakeLists.txt"), encoding="utf-8").read(), re.M)[1]
    name = f"mckpt-{version}-py3-none-manylinux_2_28_x86_64.whl"
    del ACTION["runs"]["steps"][1:]
    for wheel, asked in [("", f"https://github.com/owner/mckpt/releases/download/v{version}/{name}"), ("dist/mckpt.whl", "dist/mckpt.whl")]:
        statuses, printed, outputs = act(first=0, programs=programs, path=TINY_MODEL, wheel=wheel)
        expect(list(statuses.values()) == [0], f"installing: {statuses}\n{printed}")
        expect(open(os.path.join(work, "asked"), encoding="utf-8").read() == asked + "\n", "pip was asked for " + open(os.path.join(work, "asked"), encoding="utf-8").read())
        expect(outputs["GITHUB_PATH"].endswith("/mckpt/bin\n"), f"the path is {outputs}")
finish(20)
