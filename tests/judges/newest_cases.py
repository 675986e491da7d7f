"""Checkpoints that the newest releases of the writers saved (test_data/newest): what each command of mckpt makes of them is what the
libraries themselves have, or a refusal that names what is refused (REFUSED).

    newest_cases.py GROUP [CASE...]            a group of cases, or some of its cases
"""

import hashlib
import json
import os
import shutil
import sys
import tarfile
import tempfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.folders import safetensors
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

# Cases that mckpt refuses, in every command that reads the values; the error names what is refused.
REFUSED = {
    "L_ia3": ("MC2001", "'IA3'"), "L_loha": ("MC2001", "'LOHA'"), "L_lokr": ("MC2001", "'LOKR'"), "L_oft": ("MC2001", "'OFT'"),
    "L_vera": ("MC2001", "'VERA'"),
}

# States of the optimizer that are not stored by parameter are refused by name, or named as not read.
STATES_BY_RUN = {
    "M_gather_": ("MC3005", "dp_zero_gather_scatter"), "M_pt_": ("MC3005", "distributed optimizer"), "M_verl2_hf_": ("not read", "optimizer/dist_ckpt"),
    ("M_dp", "M_moe_", "M_nopsave_", "M_pp", "M_tied_", "M_tp", "M_verl1_", "M_verl2_w"): ("MC3005", "dp_reshardable"),
}

_torch = {}


def answer(path):
    """name -> (data type, shape, SHA-256) of an expected*.json; None where the case has none."""
    if not os.path.exists(path):
        return None
    with open(path) as f:
        return {name: (t["dtype"], t["shape"], t["sha256"]) for name, t in json.load(f)["tensors"].items()}


def written(path):
    """The same of what mckpt wrote, a safetensors file or a folder of them."""
    if os.path.isfile(path):
        folder = path + ".folder"
        os.makedirs(folder)
        os.rename(path, os.path.join(folder, "model.safetensors"))
        path = folder
    return {name: (dtype, torch_shape(dtype, shape), hashlib.sha256(data).hexdigest()) for name, (dtype, shape, data) in safetensors(path).items()}


def torch_shape(dtype, shape):
    """safetensors counts items of four bits, torch pairs of them."""
    return [*shape[:-1], shape[-1] // 2] if dtype == "F4" and shape else shape


def difference(got, want):
    """The first differences of two answers; "" where they are equal."""
    if got == want:
        return ""
    missing, extra = sorted(set(want) - set(got)), sorted(set(got) - set(want))
    unlike = [name for name in want if name in got and got[name] != want[name]]
    return (f"{len(missing)} missing {missing[:2]}, {len(extra)} too many {extra[:2]}, {len(unlike)} unlike "
            f"{[(name, got[name][:2], want[name][:2]) for name in unlike[:1]]}")


def first_lines(run):
    lines = [line.strip() for line in (run.stderr + run.stdout).splitlines() if "MC" in line or "problem" in line or "-->" in line]
    return " | ".join(lines[:2])[:300]


def read_states(folder):
    """The optimizer of a torch_dist folder, as torch reads it."""
    if not _torch:
        import torch
        import torch.distributed.checkpoint as dcp
        _torch.update(torch=torch, dcp=dcp)
    torch, dcp = _torch["torch"], _torch["dcp"]
    reader = dcp.FileSystemReader(next(os.path.join(folder, name) for name in os.listdir(folder) if name.startswith(("iter_", "release"))))
    tensors = {key: torch.empty(entry.size, dtype=entry.properties.dtype) for key, entry in reader.read_metadata().state_dict_metadata.items()
               if key.startswith("optimizer.") and hasattr(entry, "size")}
    dcp.load(tensors, storage_reader=reader, no_dist=True)
    names = {torch.float32: "F32", torch.bfloat16: "BF16", torch.int64: "I64"}
    return {key.replace(".fp32_param.", ".param."): (names.get(t.dtype), list(t.shape), hashlib.sha256(t.contiguous().view(torch.uint8).numpy().tobytes()).hexdigest())
            for key, t in tensors.items()}


class Case:
    """One folder of the data, and what each command makes of it: `found` has "" for a step that is right, or a reason."""

    def __init__(self, folder):
        self.folder, self.name = folder, os.path.basename(folder)
        with open(self.at("case.json")) as f:
            self.facts = json.load(f)
        self.source = self.at(self.facts.get("src") or next(name for name in ("ckpt", "src.pt", "src", "files") if os.path.exists(self.at(name))))
        self.assets = ["--assets", self.at("assets")] if os.path.exists(self.at("assets/config.json")) else []
        self.base = ["--base", self.at("base")] if os.path.isdir(self.at("base")) else []
        self.out = self.at("out")
        self.found = {}

    def at(self, name):
        return os.path.join(self.folder, name)

    def mckpt(self, *args):
        """Runs the program; the exit statuses of a crash and of a time that is over are never right."""
        run = run_mckpt(*args)
        expect(0 <= run.returncode < 100, f"{self.name}: {args[:2]}: exit status {run.returncode}")
        return run

    def refused(self):
        """The words of a refusal that is right; None for a case that is read."""
        return REFUSED.get(self.name) or self.facts.get("refused")

    def judge(self):
        """Runs every command that the case has an answer for. Returns `found`."""
        if os.path.exists(self.at("expected_files.json")):
            self.files()
        else:
            self.look()
            self.write()
        return self.found

    def clean(self):
        for path in (self.out, self.out + ".safetensors", self.out + ".safetensors.folder"):
            shutil.rmtree(path, ignore_errors=True) if os.path.isdir(path) else os.path.exists(path) and os.remove(path)

    def step(self, name, run, judge=lambda: ""):
        """A step that must succeed, after which the result is judged; where mckpt refuses the case, it must say why."""
        refused = self.refused()
        if refused:
            text = run.stdout + run.stderr
            self.found[name] = "" if run.returncode and all(word in text for word in refused) else f"not refused: {run.returncode} {first_lines(run)}"
        else:
            self.found[name] = f"{run.returncode}: {first_lines(run)}" if run.returncode else judge()

    def look(self):
        self.step("inspect", self.mckpt("inspect", self.source, *self.base))
        self.step("verify", self.mckpt("verify", self.source, *self.base, *(self.assets if self.facts.get("verify_assets", True) and not self.base else [])))
        run = self.mckpt("ls", self.source, "--digest", "--jsonl", *self.base)
        self.step("ls", run, lambda: self.judge_list(rows_of(run)))
        states = answer(self.at("expected_optimizer.json"))
        if states:
            runs = [run]
            if "optimizer" in self.facts:
                runs.append(self.mckpt("ls", os.path.join(self.source, self.facts["optimizer"]), "--digest", "--jsonl"))
            rows = [row for r in runs for row in rows_of(r).values()]
            have = {(tuple(row.get("shape", ())), digest_of(row)) for row in rows}
            lost = [name for name, (_, shape, digest) in states.items() if shape and (tuple(shape), digest) not in have]
            self.found["optimizer"] = f"{len(lost)} of {len(states)} states are not listed: {lost[:2]}" if lost else ""

    def judge_list(self, rows):
        """The digests of `ls` are the library's, and every name that the file stores is listed."""
        digests = {name: digest_of(row) for name, row in rows.items() if digest_of(row)}
        files = ["expected_raw.json", "expected_own_names.json", "expected_keys.json"]
        grid = self.facts.get("grid", {})  # keys of torch_dist: files of ranks have the keys of each rank,
                                           # and Hugging Face has others
        if grid.get("fmt") != "torch" and grid.get("how") != "verl2_hf":
            files.append("expected_weights.json")
        for file in files:
            want = answer(self.at(file))
            if want:
                lost = [name for name in want if name not in digests]
                if lost:
                    return f"{len(lost)} of {len(want)} tensors of {file} are not listed: {lost[:2]}"
                unlike = [name for name in want if digests[name] != want[name][2]]
                if unlike:
                    return f"{len(unlike)} digests are not those of {file}: {unlike[:2]}"
        want = answer(self.at("expected.json")) or {}
        unlike = [name for name in want if name in digests and digests[name] != want[name][2]] if not self.base else []
        return f"{len(unlike)} digests are not those of expected.json: {unlike[:2]}" if unlike else ""

    def convert(self, step, want, *args):
        """A conversion whose result must be one of the answers."""
        self.clean()
        wants = [w for w in want if w is not None]
        if wants:
            run = self.mckpt(*args, "--no-sync")
            self.step(step, run, lambda: min((difference(written(self.result()), w) for w in wants), key=len))
        return bool(wants) and not self.found[step]

    def result(self):
        return next(p for p in (self.out, self.out + ".safetensors", self.out + ".safetensors.folder") if os.path.exists(p))

    def write(self):
        expected = [answer(self.at(name)) for name in ("expected.json", "expected_bf16.json", "expected_raw.json", "expected_dequantized.json")]
        settings = [*(self.assets if not self.base else []), *self.base, *self.facts.get("export_options", [])]
        if not self.facts.get("no_export"):
            if self.convert("export", expected[0:1], "export", self.source, self.out, *settings) and self.assets and not self.base and not self.refused():
                self.step("against", self.mckpt("verify", self.out, "--against", self.source, *self.assets))
            self.convert("export_bf16", expected[1:2], "export", self.source, self.out, *settings, "--dtype", "bf16")
        kind = "pt-to-safetensors" if self.source.endswith(".pt") else "to-safetensors"
        if expected[2]:
            self.convert("to_safetensors", [expected[2], expected[0]], "convert", kind, self.source, self.out + ".safetensors", *self.base)
        self.convert("dequantize", expected[3:4], "convert", "dequantize", self.source, self.out, "--dtype", "bf16")
        states = answer(self.at("expected_states.json"))
        if states:
            self.clean()
            run = self.mckpt("convert", "to-mcore", self.source, self.out, *self.assets, "--no-sync")
            words = next((words for names, words in STATES_BY_RUN.items() if self.name.startswith(names)), None)
            if words:
                self.found["states"] = "" if all(word in run.stdout + run.stderr for word in words) else f"not named: {first_lines(run)}"
            else:
                self.step("states", run, lambda: difference(read_states(self.out), states))
        self.clean()

    def files(self):
        """Files of `files/`, each as the library reads it; what is not a plain tensor is refused, or not
        written as one."""
        with open(self.at("expected_files.json")) as f:
            expected = json.load(f)["files"]
        for name in sorted(os.listdir(self.source)):
            self.clean()
            path, want = os.path.join(self.source, name), expected[name]
            run = self.mckpt("convert", "pt-to-safetensors", path, self.out + ".safetensors", "--no-sync")
            got = written(self.result()) if run.returncode == 0 else {}
            tensors = want if isinstance(want, dict) else {}
            plain = {key: (t["dtype"], t["shape"], t["sha256"]) for key, t in tensors.items() if "sha256" in t}
            if len(plain) == len(tensors) and "can contain only tensors" in run.stderr:  # there are objects beside them
                rows = rows_of(self.mckpt("ls", path, "--digest", "--jsonl"))
                unlike = [key for key, (_, _, digest) in plain.items() if key not in rows or digest_of(rows[key]) != digest]
                self.found[name] = f"`ls` differs in {unlike}" if unlike else ""
            elif len(plain) == len(tensors) and plain:
                self.found[name] = f"{run.returncode}: {first_lines(run)}" if run.returncode else difference(got, plain)
            else:
                words = "unsupported", "cannot be stored", "can contain only tensors", "does not know these classes"
                named = any(word in run.stdout + run.stderr for word in words)
                self.found[name] = "" if run.returncode and named else f"not refused by name: {run.returncode} {first_lines(run)}"
            run = self.mckpt("verify", path)  # what is not supported is sound all the same
            if run.returncode:
                self.found[name] = f"verify: {run.returncode} {first_lines(run)}"
        self.clean()


def rows_of(run):
    """name -> row of `ls --jsonl`."""
    rows = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")] if run.returncode == 0 else []
    return {row["name"]: row for row in rows if "name" in row}


def digest_of(row):
    return (row.get("digest") or row.get("sha256") or "").replace("sha256:", "")


def main():
    group, only = sys.argv[1], sys.argv[2:]
    if group == "M":  # torch reads the optimizers that `to-mcore` writes
        need("torch", "numpy")
    steps = 0
    with tempfile.TemporaryDirectory(prefix="mckpt_newest_") as work:
        with tarfile.open(os.path.join(DATA, "newest", group + ".tar.xz")) as tar:
            tar.extractall(work, filter="data")
        for name in sorted(os.listdir(work)):
            if only and name not in only:
                continue
            case = Case(os.path.join(work, name))
            for step, why in case.judge().items():
                expect(not why, f"{name}: {step}: {why}")
                steps += 1
            shutil.rmtree(case.folder)
    finish(max(steps, 1))


if __name__ == "__main__":
    main()
