"""--map-file takes what `mckpt mappings show FAMILY --json` prints: as it is it changes nothing, for every golden model; a row that is
changed in it replaces that row alone."""
import json
import os

from mckpt_tests.checks import expect, finish
from mckpt_tests.models import Models
from mckpt_tests.program import run_mckpt

models = Models()
families = {kind: f["name"] for f in json.loads(run_mckpt("mappings", "list", "--json").stdout)["families"] for kind in f["model_types"]}
# Models of whose names the real tool makes something else: no table is meant for them.
seen = 0
for name in sorted(os.listdir(models.root.name)):
    with open(os.path.join(models.path(name), "config.json")) as f:
        family = families.get(json.load(f)["model_type"])
    shown = run_mckpt("mappings", "show", family, "--json")
    rows = os.path.join(models.root.name, f"{name}.json")
    with open(rows, "w") as f:
        f.write(shown.stdout)
    plain = run_mckpt("ls", models.path(name), "--as", "fsdp", "--dp", 2, "--digest", "--json")
    mapped = run_mckpt("ls", models.path(name), "--as", "fsdp", "--dp", 2, "--digest", "--json", "--map-file", rows)
    if plain.returncode != 0:
        continue
    seen += 1
    expect(mapped.returncode == 0 and mapped.stdout == plain.stdout, f"{name} ({family}): {mapped.stderr}")
expect(seen > 12, f"only {seen} models")

# One row with another rule: only its parameter changes.
shown = json.loads(run_mckpt("mappings", "show", families["qwen3"], "--json").stdout)
row = next(r for r in shown["rows"] if r["megatron"].endswith("linear_fc1.weight"))
with open(os.path.join(models.path("qwen3_dense"), "config.json")) as f:
    expect(json.load(f)["model_type"] == "qwen3", "qwen3_dense is a qwen3")
row["hugging_face"].reverse()
path = os.path.join(models.root.name, "reversed.json")
with open(path, "w") as f:
    json.dump(shown, f)
digests = [{t["name"]: t["sha256"] for t in json.loads(run_mckpt("ls", models.path("qwen3_dense"), "--as", "megatron", "--digest", "--json", *more).stdout)["tensors"]}
           for more in ((), ("--map-file", path))]
changed = {n for n in digests[0] if digests[0][n] != digests[1][n]}
expect(changed == {n for n in digests[0] if n.endswith("mlp.linear_fc1.weight")}, f"changed: {sorted(changed)[:4]}")

# A list of names without shapes is still refused, with the form that is expected.
with open(path, "w") as f:
    json.dump({"rows": [{"megatron": row["megatron"], "rule": row["rule"], "hugging_face": row["hugging_face"]}]}, f)
refused = run_mckpt("ls", models.path("qwen3_dense"), "--as", "megatron", "--map-file", path)
expect(refused.returncode != 0 and "must be a list of [name, shape]" in refused.stderr, refused.stderr)
finish(15)
