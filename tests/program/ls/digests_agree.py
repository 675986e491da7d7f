"""`mckpt ls --digest` sees what torch saw in the files of test_data: names, data types, shapes and the SHA-256 of every tensor.
"""
import json
import pathlib
import sys

from mckpt_tests import setting
from mckpt_tests.program import run_mckpt

DATA = pathlib.Path(setting.DATA)

# A path, and the manifest of what it holds.
WHOLE = [
    ("dcp/plain", "dcp/plain.manifest.json"),
    ("dcp/uneven_4", "dcp/uneven_4/iter_0000010.manifest.json"),
    ("dcp/uneven_tp2dp2", "dcp/uneven_tp2dp2.manifest.json"),
    ("dcp/torch_dist_mini", "dcp/torch_dist_mini.manifest.json"),
    ("dcp/torch_dist_pp2", "dcp/torch_dist_pp2.expected.json"),
    ("dcp/fsdp_dtensor_optim", "dcp/fsdp_dtensor_optim.expected.json"),
    ("dcp/hfsdp", "dcp/hfsdp.expected.json"),
    ("dcp/megatron_fsdp_v2", "dcp/megatron_fsdp_v2.expected.json"),
    ("dcp/fsdp2", "dcp/fsdp2.expected.json"),
    ("formats/pt/dtensor_per_rank", "formats/pt/dtensor_per_rank.manifest.json"),
    ("formats/safetensors/dcp_hf_sharded", "formats/safetensors/dcp_hf_sharded.manifest.json"),
    ("formats/safetensors/dcp_hf_consolidated", "formats/safetensors/dcp_hf_consolidated.manifest.json"),
    ("formats/safetensors/dcp_hf_consolidated/sharded", "formats/safetensors/dcp_hf_consolidated.manifest.json"),
]
# Manifests of several files.
OF_FILES = ["formats/pt/manifest.json", "formats/safetensors/manifest.json"]

FIELDS = ("dtype", "shape", "sha256")
failures, compared = [], 0


def fail(what):
    failures.append(what)
    print("FAIL", what)


def compare(path, want):
    """The listing of a path against {name: {dtype, shape, sha256}}."""
    global compared
    run = run_mckpt("ls", DATA / path, "--json", "--digest", timeout=60)
    if run.returncode:
        return fail(f"{path}: exit status {run.returncode}: {run.stderr}")
    got = {t["name"]: t for t in json.loads(run.stdout)["tensors"]}
    for name in sorted(got.keys() | want.keys()):
        g, w = ({k: side[name].get(k) for k in FIELDS} if name in side else None for side in (got, want))
        if g != w:
            fail(f"{path}: {name}: torch saw {w}, mckpt {g}")
    compared += len(want)


def main():
    for path, manifest in WHOLE:
        compare(path, json.loads((DATA / manifest).read_text())["tensors"])
    for manifest in OF_FILES:
        folder = pathlib.Path(manifest).parent
        files = json.loads((DATA / manifest).read_text())["files"]
        for name, file in files.items():
            compare(folder / name, file["tensors"])
        together = {name: t for file, f in files.items() if file.startswith("hf_sharded/") for name, t in f["tensors"].items()}
        if together:
            compare(folder / "hf_sharded", together)
    print(f"{compared} tensors compared, {len(failures)} differences")
    sys.exit(bool(failures) or compared < 350)


main()
