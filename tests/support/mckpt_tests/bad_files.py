"""The cases of test_data/bad_files, each with what a careful reader makes of it (the README there).

    with unpacked() as files:
        for case in cases():
            copy, path = copied(case, files, folder)        what was copied into the folder, and what of it is given to mckpt
"""
import contextlib
import json
import os
import pathlib
import shutil
import tarfile
import tempfile

from mckpt_tests.setting import DATA

CASES = pathlib.Path(DATA) / "bad_files"
# The conversion that takes such a file, by the kind of the case.
CONVERTERS = {"pt": ["pt-to-safetensors", "--tensors-only"], "safetensors": ["safetensors-to-pt"], "hf_index": ["safetensors-to-pt"],
              "config": ["hf-to-fsdp"]}


def cases():
    return [json.loads(line) for line in (CASES / "cases.jsonl").read_text().splitlines()]


def kind(case):
    return case["copy"].split("/")[0]


@contextlib.contextmanager
def unpacked():
    with tempfile.TemporaryDirectory(prefix="mckpt_bad_") as files, tarfile.open(CASES / "files.tar.gz") as archive:
        trusting = {"filter": "fully_trusted"} if hasattr(tarfile, "fully_trusted_filter") else {}
        archive.extractall(files, **trusting)
        yield files


def copied(case, files, folder):
    source, copy = os.path.join(files, case["copy"]), os.path.join(folder, os.path.basename(case["copy"]))
    if os.path.isdir(source):
        shutil.copytree(source, copy, symlinks=True)
    else:
        shutil.copy(source, copy)
    return copy, os.path.join(copy, os.path.relpath(case["open"], case["copy"])) if "open" in case else copy
