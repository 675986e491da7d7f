"""Fields that no release of a library has yet, in every class of the pickles that are read: each object of .metadata and of files of ranks with one field more
(mckpt_tests/more_fields.py). The answers of torch 2.11 and 2.15 to each are in
test_data/newest/more_fields.json, by test_data/newest/judge_more_fields.py.

Where torch reads the same as without the field, mckpt reads the same too, or refuses with the name of the class: of objects that say where items lie (CLOSED), since
a field more may say it otherwise. Fields that are read past are named by `verify`. Where torch refuses, mckpt
never reads on as if nothing was there."""

import json
import os
import shutil
import sys
import tarfile
import tempfile
import zipfile

from mckpt_tests.checks import expect, finish
from mckpt_tests.more_fields import mutations
from mckpt_tests.program import run_mckpt
from mckpt_tests.setting import DATA

# Archive, case, what is opened, and which of its files has the pickle.
SOURCES = [("B", "B_boxes_t215_w2", "ckpt", ".metadata"), ("B", "B_model_optim_t213_w3", "ckpt", ".metadata"),
           ("A", "A_order_t215_w4", "ckpt", "model_world_size_4_rank_0.pt"), ("A", "A_verl_fsdp1_st_t215_w3", "ckpt", "model_world_size_3_rank_1.pt"),
           ("A", "A_verl_fsdp_tp_t213_w4", "ckpt", "model_world_size_4_rank_2.pt"), ("M", "M_fr_tp2dp2_t214_w4", "ckpt/iter_0000005", ".metadata")]


# Fields of rank files that are not read: where a shard was and how the others were cut.
NOT_NEEDED = {"torch.distributed._shard.sharding_spec.chunk_sharding_spec.ChunkShardingSpec", "torch.distributed.remote_device._remote_device"}


def pickle_of(path):
    if not zipfile.is_zipfile(path):
        with open(path, "rb") as f:
            return f.read()
    with zipfile.ZipFile(path) as archive:
        return archive.read(next(name for name in archive.namelist() if name.endswith("/data.pkl")))


def write_with(path, pickle, to):
    """The file with another pickle."""
    if not zipfile.is_zipfile(path):
        with open(to, "wb") as f:
            f.write(pickle)
        return
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(to, "w", zipfile.ZIP_STORED) as out:
        for name in archive.namelist():
            out.writestr(name, pickle if name.endswith("/data.pkl") else archive.read(name))


def mutants(work):
    """(id, folder of the case, its mutated copy) for each; the copy is gone when the next is asked for."""
    for archive, case, source, file in SOURCES:
        with tarfile.open(os.path.join(DATA, "newest", archive + ".tar.xz")) as tar:
            tar.extractall(work, [m for m in tar if m.name.startswith(case + "/")], filter="data")
        folder = os.path.join(work, case, source)
        for name, which, value, pickle in mutations(pickle_of(os.path.join(folder, file))):
            copy = os.path.join(work, "copy")
            shutil.rmtree(copy, ignore_errors=True)
            shutil.copytree(folder, copy, copy_function=os.link)
            os.remove(os.path.join(copy, file))
            write_with(os.path.join(folder, file), pickle, os.path.join(copy, file))
            yield f"{case}: {which} {name}: {value}", folder, copy


def listing(folder):
    """Exit status, names with types, shapes and digests, and the error."""
    run = run_mckpt("ls", folder, "--digest", "--jsonl")
    rows = [json.loads(line) for line in run.stdout.splitlines() if line.startswith("{")] if run.returncode == 0 else []
    return run.returncode, [(row.get("name"), row.get("dtype"), row.get("shape"), row.get("digest") or row.get("sha256")) for row in rows], run.stderr


def main():
    table = os.path.join(DATA, "newest", "more_fields.json")
    with open(table) as f:
        judged = json.load(f)
    seen, plain, noted = set(), {}, set()  # noted: classes whose new field `verify` has named
    with tempfile.TemporaryDirectory(prefix="mckpt_fields_") as work:
        for what, folder, copy in mutants(work):
            seen.add(what)
            if folder not in plain:
                plain[folder] = listing(folder)
                expect(plain[folder][0] == 0 and len(plain[folder][1]) > 1, f"{folder} is read: {plain[folder][2][:200]}")
            status, told, error = listing(copy)
            of_torch = judged.get(what, {})
            name = what.split(": ")[1].split(" ")[1]
            if "--show" in sys.argv:
                print(what, of_torch, "same" if (status, told) == plain[folder][:2] else (status, error[:300]))
                continue
            read_alike = (status, told) == plain[folder][:2]
            named = status != 0 and name.rsplit(".", 1)[1] in error
            expect(bool(of_torch), f"{what}: {os.path.basename(table)} has no row for it")
            if "same" in of_torch.values():
                expect(read_alike or named, f"{what}: torch {of_torch}, mckpt {(status, error[:200])}")
                if read_alike and name.startswith("torch.distributed.") and name not in noted | NOT_NEEDED and what.startswith("A_"):
                    noted.add(name)
                    said = run_mckpt("verify", copy)
                    field = name.rsplit(".", 1)[1] + ".field_of_tomorrow"
                    expect(said.returncode == 0 and field in said.stdout, f"{what}: `verify` does not name {field}: {said.returncode} {said.stdout[-600:]}")
            elif read_alike:
                expect(run_mckpt("verify", copy).returncode == 1, f"{what}: torch {of_torch}, and `verify` finds nothing wrong")
    expect(seen == set(judged), f"{os.path.basename(table)} has rows of no mutation: {sorted(set(judged) - seen)[:3]}")
    finish(200)


if __name__ == "__main__":
    main()
