"""An option that cannot have an effect is refused with the reason, and not taken in silence: every option of every command, with every word that
it has, an example of a value and the empty one, is given to a command that does something. Either the answer, a file of the result or the exit status is another one
than without the option, or the value is what the command takes by itself (USUAL), or there is a reason why it may show nothing here (QUIET).
"""
import concurrent.futures
import hashlib
import json
import os
import re
import shutil
import subprocess
import tempfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import MCKPT, TINY_MODEL

work = tempfile.TemporaryDirectory(prefix="mckpt_options_")
models = Models(only=("nemotron_h",))
HF, OUT = "HF", "OUT"  # the model; the place of a result

# Command -> command lines that do something. Placeholders are whole words, or the front of a name.
BASES = {
    "inspect": ["HF", "fsdp"],
    "ls": ["HF", "HF --as megatron", "HF --as fsdp --dp 3"],
    "stats": ["HF"],
    "cat": ["HF lm_head.weight"],
    "pattern": ["[*-]M"],
    "layout": ["HF --json", "HF --dp 3 --json", "fsdp --json", "32x16 8 --world 3"],
    "plot": ["HF -o OUT.svg", "HF --as fsdp --dp 3 -o OUT.svg", "HF --as torch_dist -o OUT.svg"],
    "verify": ["HF", "fsdp --against HF", "HF --against HF", "own --against HF"],
    "diff": ["HF fsdp", "HF HF", "HF own", "own own2"],
    "convert hf-to-fsdp": ["HF OUT", "HF OUT --dp 3"],
    "convert to-fsdp": ["mcore OUT --dp 3", "HF OUT --dp 3"],
    "convert fsdp-to-hf": ["fsdp OUT"],
    "export": ["fsdp OUT", "mcore OUT", "own OUT"],
    "convert to-mcore": ["HF OUT", "fsdp OUT"],
    "convert reshard": ["fsdp OUT --dp 3", "mcore OUT", "pt OUT"],
    "convert to-pt": ["HF OUT", "fsdp OUT"],
    "convert group": ["hybrid OUT --pattern [M-]M[*-]"],
    "convert to-dcp": ["HF OUT"],
    "convert to-hdf5": ["HF OUT.h5"],
    "convert quantize": ["HF OUT --scheme fp8-block"],
}
# Options about how a command works or prints, how a conversion is carried out, and wishes that are fulfilled anyway.
NOT_TRIED = {
    "--json", "--jsonl", "--quiet", "--verbose", "--progress", "--color", "--ascii", "--follow-links", "--model-files", "--help", "--help-all", "--version", "--threads",
    "--max-memory", "--overwrite", "--resume", "--phase-timeout", "--rank-timeout", "--start-timeout", "--report", "--no-sync", "--allow-overflow", "--weights-only", "--strict",
}  # fmt: skip
# Words and values that a command takes by itself here.
USUAL = {
    "--hsdp-outer": {"replicate"}, "--engine": {"v1"}, "--strategy": {"optim_grads_params"}, "--fsdp-unit": {"TransformerLayer"}, "--fp8-recipe": {"auto", "none"},
    "--fsdp-units-for": {"full"}, "--spelling": {"usual"}, "--vocab-size": {"auto", "keep"}, "--make-vocab-size-divisible-by": {"2"}, "--params-dtype": {"auto", "none", "bf16"},
    "--dtype": {"keep", "bf16", "any", "auto"}, "--expert-layout": {"auto", "apart"}, "--layers": {"auto", "stacked"}, "--keys": {"auto", "logical"}, "--dialect": {"grouped"},
    "--only": {"all", "changed"}, "--norms": {"auto"}, "--gradients": {"fp32"}, "--moments": {"fp32"},
}  # fmt: skip
# Facts about a source that it has already, and what shows only in other sources and answers.
QUIET = {
    "--accept": "damage that is there is accepted", "--raw": "codes of quantised tensors", "--atol": "values that differ", "--rtol": "values that differ", "--max-ulp": "values that differ",
    "--tol-rule": "values that differ", "--top": "rows of differences", "--single-file": "a result of several files", "--path-tp": "one side has ranks, which either option describes",
    "--path-etp": "one side has ranks, which either option describes", "--fsdp-units-for": "a fact of the run's version, of which optim_grads_params is independent",
    "--bucket-size": "more parameters outside of units", "--strategy": "all that shard save alike where everything is a unit", "--fsdp-unit": "layers of several classes",
    "--params-dtype": "values that the type cannot have", "--assets": "the folder of the model, which the other side is", "--no-assets": "assets", "--spelling": "names, which the tables of text leave out",
}  # fmt: skip

for command, name in (("hf-to-fsdp", "fsdp --dp 2"), ("to-mcore", "mcore"), ("to-pt", "pt")):
    run = run_mckpt("convert", command, TINY_MODEL, *os.path.join(work.name, name).split(), "--no-sync", "-q")
    expect(run.returncode == 0, run.stderr)
for name in ("own", "own2"):
    run = run_mckpt("convert", "to-dcp", TINY_MODEL, os.path.join(work.name, name), "--no-sync", "-q")
    expect(run.returncode == 0, run.stderr)
    shutil.copy(os.path.join(TINY_MODEL, "config.json"), os.path.join(work.name, name))
run = run_mckpt("convert", "to-mcore", models.path("nemotron_h"), os.path.join(work.name, "hybrid"), "--no-sync", "-q")
expect(run.returncode == 0, run.stderr)


def digest(folder):
    sums = hashlib.sha256()
    for root, _, files in sorted(os.walk(folder)):
        for name in sorted(set(files) - {"mckpt_manifest.json"}):
            sums.update(os.path.relpath(os.path.join(root, name), folder).encode())
            with open(os.path.join(root, name), "rb") as f:
                sums.update(f.read())
    return sums.hexdigest()


def answer(command, base, more):
    """Exit status, what was said and the files that were written; times and the place are left out."""
    place = tempfile.mkdtemp(dir=work.name)
    words = [w.replace(OUT, os.path.join(place, "result")) if w.startswith(OUT) else TINY_MODEL if w == HF else w for w in base.split()]
    run = subprocess.run([MCKPT, *command.split(), *words, *more], cwd=work.name, capture_output=True, text=True, timeout=120)
    said = re.sub(r"(in|at) [0-9.,]+ .*", "", (run.stdout + run.stderr).replace(place, "PLACE"))
    return run.returncode, said, digest(place)


def values(option):
    if option["takes"] == "nothing":
        return [None]
    return [*option["words"], *(["2"] if option["takes"] == "number" else [] if option["words"] else ["x"]), *([] if option["optional_value"] else [""])]


def tries():
    for page in json.loads(run_mckpt("help", "--json").stdout)["commands"]:
        for base in BASES.get(page["name"], []):
            for option in page["options"]:
                flag = option["names"][-1]
                if flag in NOT_TRIED or flag in base.split():
                    continue
                for value in values(option):
                    if value not in USUAL.get(flag, set()) and (value != "" or base == BASES[page["name"]][-1]):
                        yield page["name"], base, flag, value


plain = {(command, base): answer(command, base, []) for command, bases in BASES.items() for base in bases}
for (command, base), (status, said, _) in plain.items():
    expect(status <= 1, f"{command} {base}: {status} {said}")
with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
    asked = list(tries())
    for (command, base, flag, value), found in zip(asked, pool.map(lambda t: answer(t[0], t[1], [t[2]] if t[3] is None else [t[2], t[3]]), asked)):
        if value == "":
            expect(found[0] == 2 and flag in found[1], f"{command} {base} {flag} '': {found[0]} {found[1][:300]}")
        elif flag not in QUIET:
            expect(found != plain[command, base], f"{command} {base} {flag} {value}: taken, and without effect")
finish(1000)
