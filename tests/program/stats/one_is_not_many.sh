#!/usr/bin/env bash
# A count of one is worded as one: what `stats` leaves out of the norm of all parameters.
. "$MCKPT_SOURCE"/tests/support/common.inc
python - <<'PY'
import json, struct
for name, states in (("one", 1), ("two", 2)):
    tensors = dict.fromkeys(["w.weight", "optimizer.state.exp_avg.w.weight", "optimizer.state.exp_avg_sq.w.weight"][: 1 + states], "F32")
    header = {t: {"dtype": kind, "shape": [1], "data_offsets": [4 * i, 4 * i + 4]} for i, (t, kind) in enumerate(tensors.items())}
    text = json.dumps(header).encode()
    open(f"{name}.safetensors", "wb").write(struct.pack("<Q", len(text)) + text + bytes(4 * len(tensors)))
PY
expect 0 "$mckpt" stats one.safetensors
has out "(1 tensor; 1 other is a state or packed)"
expect 0 "$mckpt" stats two.safetensors
has out "(1 tensor; 2 others are states or packed)"
expect 1 "$mckpt" ls two.safetensors 'nothing*'
has err "3 tensors"
expect 1 "$mckpt" ls one.safetensors 'nothing*'
has err "2 tensors"
