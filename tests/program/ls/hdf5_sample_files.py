"""test_data/hdf5: what mckpt lists is what HDF5 itself says; attributes, strings and links are objects."""
import json
import os
import sys

from mckpt_tests import setting
from mckpt_tests.program import run_mckpt

DATA = os.path.join(setting.DATA, "hdf5")


def ask(*arguments):
    done = run_mckpt(*arguments)
    if done.returncode != 0:
        sys.exit(f"FAILED: {arguments}: {done.returncode}\n{done.stderr}")
    return done.stdout


for name, wanted in json.load(open(os.path.join(DATA, "expected.json"))).items():
    path = os.path.join(DATA, name)
    tensors = json.loads(ask("ls", "--json", "--digest", path))["tensors"]
    found = {t["name"]: [t["dtype"], t["shape"], t["sha256"]] for t in tensors}
    if found != wanted:
        sys.exit(f"FAILED: {name}:\nexpected {wanted}\nfound    {found}")
    places = {t["name"]: t["offset"] for t in tensors}
    if places["encoder/layer.0/chunked"] is not None or places["encoder/layer.0/contiguous"] is None:
        sys.exit(f"FAILED: offsets {places}")
    look = json.loads(ask("inspect", "--json", path))
    objects = {o["name"]: o["summary"] for o in look["objects"]}
    if objects != {"names": "strings", "@model": "str 'tiny'", "@step": "int 12", "alias": "a soft link to /encoder/sparse",
                   "encoder/layer.0/contiguous@units": "str 'none'"}:
        sys.exit(f"FAILED: objects {objects}")
    if look["facts"] != {"model": "tiny", "step": "12"}:
        sys.exit(f"FAILED: facts {look['facts']}")
    if ask("cat", path, "encoder/sparse[18]").split() != ["6", "7", "8", "9", "10", "11"]:
        sys.exit("FAILED: cat of a chunked dataset")
    if ask("cat", path, "encoder/sparse[0,:2]").split() != ["-3", "-3"]:
        sys.exit("FAILED: cat of what was never written")
    print(f"{name}: {len(found)} datasets")
