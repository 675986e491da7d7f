#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

# A model has a tensor with the name of a counter, "steps". In a file of its own that name alone does not say that it is of the
# model; the other side does.
source=$MCKPT_SOURCE/test_data/dcp/megatron_fsdp_v2
"$mckpt" convert to-safetensors "$source" one.safetensors -q
"$mckpt" ls one.safetensors >out
has out "steps "
expect 0 "$mckpt" verify one.safetensors --against "$source"
has out "pass  against  17 tensors"
lacks out "steps"
expect 0 "$mckpt" diff one.safetensors "$source"
expect 0 "$mckpt" diff "$source" one.safetensors
lacks out "steps"

python - <<'PYTHON'
import json, struct
with open("one.safetensors", "r+b") as f:
    (length,) = struct.unpack("<Q", f.read(8))
    begin = json.loads(f.read(length))["steps"]["data_offsets"][0]
    f.seek(8 + length + begin)
    f.write(b"\x12\x34")
PYTHON
expect 1 "$mckpt" verify one.safetensors --against "$source"
has out "tensor 'steps': differs at [0]"
expect 1 "$mckpt" diff "$source" one.safetensors
has out "1 of 17 tensors differs"
has out "steps"
