"""The recorded layer patterns and context-parallel slices, through `mckpt pattern --json`.
"""
import json
import subprocess
import sys

from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, MCKPT

failures = []


def pattern(*args):
    """The exit status and the answer. A pattern may begin with '-', so it follows '--'."""
    run = run_mckpt("pattern", "--json", *args, timeout=60)
    if run.stderr or run.returncode not in (0, 1):
        raise RuntimeError(f"{args}: exit {run.returncode}: {run.stderr}")
    return run.returncode, json.loads(run.stdout)


def arguments(op, case):
    if op == "parse":
        return ["--", case["pattern"]]
    if op == "validate_segment":
        return ["--segment", "--", case["segment"]]
    if op == "pattern_from_ratios":
        return ["--from-ratios", f"{case['num_layers']},{case['attention_ratio']!r},{case['mlp_ratio']!r}"]
    flags = []
    for name in ("pp_size", "pp_rank", "vp_stage", "first_stage_layers", "last_stage_layers"):
        if case[name] is not None:
            flags += ["--" + name.replace("_", "-"), str(case[name])]
    return [*flags, "--", case["main_pattern"]]


def check(what, want, status, got):
    """Every expected field under its own name, also inside lists; ok, exit status and schema."""
    ok = want.get("ok", True)
    problems = [f"{k}: {v!r}, not {got.get(k)!r}" for k, v in want.items() if k not in got or got[k] != v]
    if got.get("schema") != "mckpt.pattern/1" or got.get("ok") is not ok or status != (0 if ok else 1):
        problems.append(f"schema {got.get('schema')}, ok {got.get('ok')}, exit {status}")
    failures.extend(f"{what}: {p}" for p in problems)


def check_patterns():
    cases = json.load(open(f"{DATA}/hybrid/patterns.json"))["cases"]
    for case in cases:
        for dialect in ("grouped", "flat"):
            want = case["expected_grouped"]
            if dialect == "flat" and not case["flat_dialect_same"]:
                want = case["expected_flat"]
            flags = [] if dialect == "grouped" else ["--dialect", "flat"]
            check(f"{case['id']} {dialect}", want, *pattern(*flags, *arguments(case["op"], case["input"])))
    return len(cases)


def check_usage():
    for args in (["--pp-rank", "2", "--pp-size", "2", "MM"], ["--pp-rank", "-1", "MM"], ["--pp-size", "0", "MM"],
                 ["--vp-stage", "-1", "M|M"], ["--first-stage-layers", "-1", "--pp-size", "2", "MM"],
                 ["--from-ratios", "8,0.5"], ["--from-ratios", "8,x,0"], ["--from-ratios", "1000001,0,0"], [],
                 ["--segment", "--pp-size", "2", "MM"], ["--from-ratios", "8,0,0", "MM"], ["--segment"], ["-*"]):
        run = run_mckpt("pattern", *args, timeout=60)
        if run.returncode != 2 or run.stdout or not run.stderr.startswith("error[MC0"):
            failures.append(f"usage {args}: exit {run.returncode}, {run.stdout!r}, {run.stderr!r}")


def check_text():
    """The sight of a person: the mark below the byte at fault, and nothing that a terminal obeys."""
    run = run_mckpt("pattern", "--color", "never", "M\x1b*")
    lines = run.stdout.splitlines()
    if run.returncode != 1 or lines[:2] != ["  M\\x1b*", "   ^ byte 1"] or not lines[2].startswith("invalid_symbol"):
        failures.append(f"text: exit {run.returncode}, {run.stdout!r}")
    run = subprocess.run([MCKPT, "pattern", "--color", "never", "M" * 1000 + "[*"], capture_output=True, text=True)
    lines = run.stdout.splitlines()
    if len(lines[0]) > 100 or lines[0][lines[1].index("^")] != "[" or "byte 1000" not in lines[1]:
        failures.append(f"text of a long pattern: {run.stdout!r}")


TABLE = """\
[*-]M|E/*M   grouped dialect
4 physical layers (num_layers), 3 logical layers (indices of checkpoint keys), 2 pipeline segments, 1 MTP depth

logical  physical  number  kind                  keys in the checkpoint            group
segment 0: layers 0 to 2
      0         0       1  * self attention      decoder.layers.0.self_attention.  [*-] 1 of 2
      0         1       2  - dense MLP           decoder.layers.0.mlp.             [*-] 2 of 2
      1         2       3  M Mamba mixer         decoder.layers.1.mixer.
segment 1: layer 3
      2         3       4  E mixture of experts  decoder.layers.2.mlp.

MTP: 1 depth, on the last stage of the pipeline; in each depth layers are numbered from 0, and groups do not apply
layer  kind              keys in the checkpoint
    0  * self attention  mtp.layers.0.mtp_model_layer.layers.0.self_attention.
    1  M Mamba mixer     mtp.layers.0.mtp_model_layer.layers.1.mixer.

totals      2 * self attention, 2 M Mamba mixer, 1 - dense MLP, 1 E mixture of experts (MTP included)
final norm  decoder.final_layernorm.  (in memory decoder.final_norm.)
pipeline    the pipeline size must divide 2; segment v x size + r is virtual stage v of rank r
"""


def check_table():
    run = run_mckpt("pattern", "--color", "never", "[*-]M|E/*M")
    if run.stdout != TABLE:
        failures.append(f"table: {run.stdout}")


def check_warnings():
    """Patterns that are valid and still lose something say so."""
    for want, *args in (["duplicate_keys", "[MM]"], ["shared_family", "[*G]"],
                        ["layers_lost", "--pp-size", "2", "--first-stage-layers", "2", "--last-stage-layers", "2", "MMMMM"],
                        ["layers_twice", "--pp-size", "2", "--first-stage-layers", "3", "--last-stage-layers", "3", "MMMMM"],
                        ["invalid_elsewhere", "--pp-size", "2", "M|[M"], ["uncut_pipeline", "--pp-size", "2", "MM"]):
        status, got = pattern(*args)
        if status != 0 or want not in [w["class"] for w in got["warnings"]]:
            failures.append(f"warning {want} of {args}: {got}")


patterns = check_patterns()
check_usage()
check_text()
check_table()
check_warnings()
if patterns != 144:
    failures.append(f"{patterns} patterns were checked")
print(*failures[:20], f"{patterns} patterns in two dialects, {len(failures)} failures", sep="\n")
sys.exit(bool(failures))
