"""A word is changed, an entry removed or a name doubled in what other programs wrote beside the data: the header of safetensors and the index of
transformers, the directory of a file of torch.save or DeepSpeed, .metadata of torch, config.json. Every command answers or refuses; nothing is "sound" without a
word of which data are gone, and what is exported has every tensor that is listed.
"""

import io
import json
import os
import pickle
import random
import re
import shutil
import struct
import tarfile
import tempfile
import zipfile

from mckpt_tests.checks import expect, finish, need
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA, SANITIZED

need("torch")

TRIES = 2 if SANITIZED else 3  # of each kind, for each file

# The case, the file, what writes it, and whether its config.json says which tensors a model has.
CASES = [
    ("B", "B_hf_consolidated_t215_w2", "model.safetensors.index.json", "json"),
    ("B", "B_hf_consolidated_t215_w2", "model-00001-of-00002.safetensors", "safetensors"),
    ("B", "B_hf_consolidated_t215_w2", "config.json", "json"),
    ("B", "B_model_optim_t213_w3", ".metadata", "metadata"),
    ("B", "B_boxes_t214_w2", ".metadata", "metadata"),
    (None, "dcp/fsdp2", ".metadata", "metadata"),
    ("Q", "Q_fp8_block", "model.safetensors", "safetensors"),
    ("Q", "Q_fp8_block", "config.json", "json"),
    ("D", "D_zero2_w3", "global_step1/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt", "zip"),
    ("D", "D_zero2_w3", "global_step1/mp_rank_00_model_states.pt", "zip"),
    ("F", "F_dist_w2", "shard-00002-model-00001-of-00001.safetensors", "safetensors"),
    ("F", "F_dist_w2", "config.json", "json"),
]


def other_word(word, r):
    """The word with one letter or digit changed."""
    places = [i for i, c in enumerate(word) if c.isalnum()]
    if not places:
        return word + "x"
    i = r.choice(places)
    return word[:i] + ("7" if word[i] != "7" else "3") + word[i + 1:] if word[i].isdigit() else word[:i] + ("q" if word[i] != "q" else "z") + word[i + 1:]


# JSON as lists of pairs, so that a key may be there twice.
class Pairs(list):
    pass


def objects_in(value):
    out = []
    if isinstance(value, Pairs):
        out += [value] if value else []
        for _, v in value:
            out += objects_in(v)
    elif isinstance(value, list):
        for v in value:
            out += objects_in(v)
    return out


def as_text(value):
    if isinstance(value, Pairs):
        return "{" + ", ".join(json.dumps(k) + ": " + as_text(v) for k, v in value) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(as_text(v) for v in value) + "]"
    return json.dumps(value)


def changed_json(text, kind, r):
    value = json.loads(text, object_pairs_hook=Pairs)
    pairs = r.choice(objects_in(value))
    i = r.randrange(len(pairs))
    if kind == "removed":
        del pairs[i]
    elif kind == "doubled":
        name = pairs[r.randrange(len(pairs))][0]
        pairs.append((name, pairs[i][1]))
    elif isinstance(pairs[i][1], str) and r.random() < 0.5:
        pairs[i] = (pairs[i][0], other_word(pairs[i][1], r))
    elif isinstance(pairs[i][1], int) and not isinstance(pairs[i][1], bool) and r.random() < 0.5:
        pairs[i] = (pairs[i][0], pairs[i][1] + r.choice([-1, 1]))
    else:
        pairs[i] = (other_word(pairs[i][0], r), pairs[i][1])
    return as_text(value)


def of_json(path, kind, r):
    with open(path) as f:
        text = f.read()
    with open(path, "w") as f:
        f.write(changed_json(text, kind, r))


def of_safetensors(path, kind, r):
    with open(path, "rb") as f:
        data = f.read()
    size = struct.unpack("<Q", data[:8])[0]
    header = changed_json(data[8:8 + size].decode(), kind, r).encode()
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as f:
        f.write(struct.pack("<Q", len(header)) + header + data[8 + size:])


def of_zip(path, kind, r):
    with zipfile.ZipFile(path) as z:
        entries = [(i, z.read(i)) for i in z.infolist()]
    i = r.randrange(len(entries))
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as z:
        for n, (info, data) in enumerate(entries):
            if n == i and kind == "removed":
                continue
            name = other_word(info.filename, r) if n == i and kind == "changed" else info.filename
            z.writestr(name, data)
            if n == i and kind == "doubled":
                z.writestr(name, bytes(len(data)))
    with open(path, "wb") as f:
        f.write(out.getvalue())


def of_metadata(path, kind, r):
    with open(path, "rb") as f:
        metadata = pickle.load(f)
    table = r.choice([metadata.state_dict_metadata, metadata.storage_data, metadata.planner_data or metadata.storage_data])
    key = r.choice(list(table))
    if kind == "removed":
        del table[key]
    elif kind == "doubled":
        table[r.choice(list(table))] = table[key]
    elif table is metadata.storage_data:
        info = table[key]
        table[key] = type(info)(**{**vars(info), **r.choice([{"relative_path": other_word(info.relative_path, r)}, {"offset": info.offset + 64},
                                                             {"length": info.length + 64}])})
    else:
        table[other_word(key, r)] = table.pop(key)
    with open(path, "wb") as f:
        pickle.dump(metadata, f)


CHANGES = {"json": of_json, "safetensors": of_safetensors, "zip": of_zip, "metadata": of_metadata}


def digests(path):
    """The digest of every tensor that is listed; None where the list is refused."""
    run = run_mckpt("ls", path, "--digest", "--json")
    return sorted(t["sha256"] for t in json.loads(run.stdout)["tensors"]) if run.returncode == 0 else None


def lost(before, after):
    left = list(after)
    for digest in before:
        if digest in left:
            left.remove(digest)
        else:
            return True
    return False


def names_of(folder):
    """The tensors of an export, by its files."""
    out = set()
    for name in os.listdir(folder):
        if name.endswith(".safetensors"):
            with open(os.path.join(folder, name), "rb") as f:
                out |= set(json.loads(f.read(struct.unpack("<Q", f.read(8))[0]))) - {"__metadata__"}
    return out


def check(what, folder, before, out):
    runs = {w: run_mckpt(*w.split()[:1], folder, *w.split()[1:]) for w in ("inspect", "verify --json", "ls")}
    shutil.rmtree(out, ignore_errors=True)
    runs["export"] = run_mckpt("export", folder, out, "--no-sync")
    for words, run in runs.items():
        crashed = run.returncode not in (0, 1, 3, 4) or re.search(r"MC9\d\d\d|terminate called|Traceback", run.stderr)
        expect(not crashed, f"{what}: {words}: {run.returncode} {run.stderr[-300:]}")
    sound = runs["verify --json"].returncode == 0
    after = digests(folder)
    expect(not sound or after is not None, f"{what}: sound, and no list")
    if sound and after is not None and lost(before, after):
        expect(json.loads(runs["verify --json"].stdout)["findings"], f"{what}: sound without a word, and data are gone")
    if runs["export"].returncode == 0:
        expect(names_of(out), f"{what}: an export of nothing")


with tempfile.TemporaryDirectory() as scratch:
    out = os.path.join(scratch, "out")
    for pack, case, file, form in CASES:
        whole = os.path.join(scratch, case) if pack else os.path.join(DATA, case)
        if not os.path.exists(whole):
            with tarfile.open(os.path.join(DATA, "newest", f"{pack}.tar.xz")) as t:
                t.extractall(scratch, [m for m in t.getmembers() if m.name.startswith(case + "/")], filter="data")
        source = next((os.path.join(whole, f) for f in ("ckpt", "src") if os.path.isdir(os.path.join(whole, f))), whole)
        if not (before := digests(source)):
            expect(False, f"{case} has no tensors")
            continue
        for kind in ("changed", "removed", "doubled"):
            for n in range(TRIES):
                copy = os.path.join(scratch, "copy")
                shutil.rmtree(copy, ignore_errors=True)
                shutil.copytree(source, copy)
                CHANGES[form](os.path.join(copy, file), kind, random.Random(f"{case} {file} {kind} {n}"))
                check(f"{case}/{file} {kind} {n}", copy, before, out)
finish(200)
