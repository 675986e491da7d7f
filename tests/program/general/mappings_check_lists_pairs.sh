#!/usr/bin/env bash
# `mappings check -v` lists what every Megatron parameter is made of: all tensors that are read, each with its rule.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 0 "$mckpt" mappings check "$model"
lacks out "linear_qkv"
mv out summary
expect 0 "$mckpt" mappings check "$model" -v
has out "$(cat summary)"
grep -q '^decoder.layers.{0-1}.self_attention.linear_qkv.weight  *qkv  *model.layers.{0-1}.self_attn.q_proj.weight$' out || fail "no pair of qkv"
grep -q '^  *model.layers.{0-1}.self_attn.v_proj.weight$' out || fail "no v_proj"
expect 0 "$mckpt" mappings check "$model" -v --json
"$mckpt" ls "$model" --json >tensors
python - <<'PY' || fail "other pairs"
import itertools, json, re

def spread(name):
    """All names that a folded one may be: {0-1, 3} is 0, 1 or 3."""
    parts = re.split(r"\{([^}]*)\}", name)
    for i in range(1, len(parts), 2):
        parts[i] = [str(n) for r in parts[i].split(", ") for n in range(int(r.split("-")[0]), int(r.split("-")[-1]) + 1)]
    return {"".join(choice) for choice in itertools.product(*([p] if isinstance(p, str) else p for p in parts))}

pairs = json.load(open("out"))["pairs"]
found = [name for pair in pairs for source in pair["hugging_face"] for name in spread(source)]
wanted = {t["name"] for t in json.load(open("tensors"))["tensors"]}
assert all(pair["rule"] and pair["hugging_face"] for pair in pairs)
raise SystemExit(0 if len(found) == len(wanted) == 45 and set(found) == wanted else f"{sorted(found)}, not {sorted(wanted)}")
PY
