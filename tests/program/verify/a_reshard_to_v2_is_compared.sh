#!/usr/bin/env bash
# verify --against knows what resharding to Megatron-FSDP v2 changes: weights become fp32, and objects that v2 has no place for
# are named as not compared. A value that is another one is found all the same.
. "$MCKPT_SOURCE"/tests/support/common.inc
source=$MCKPT_SOURCE/test_data/dcp/fsdp_dtensor_optim
assets=$MCKPT_SOURCE/test_data/golden/models/tiny_llama1
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe

# With optimizer states. The account counts whole parameters, and says what else is in both folders.
expect 0 "$mckpt" convert reshard "$source" v2 --assets "$assets" --engine v2 --dp 2 --no-sync
has err "parts   27 tensors on disk are counted as 24"
has err "steps   8 tensors"
expect 0 "$mckpt" verify v2 --against "$source" --assets "$assets"
has out "v2: equal"
has out "opt_param_scheduler.end_wd"
has out "(Megatron-FSDP v2 has no place for them)"
lacks out "only $source"

# With bfloat16 the types differ as v2 wants it, and in no other way.
expect 0 "$mckpt" convert hf-to-fsdp "$model" v1 --dp 2 --no-sync -q
expect 0 "$mckpt" convert reshard v1 wide --engine v2 --dp 3 --no-sync -q
expect 0 "$mckpt" verify wide --against v1
has out "wide: equal"
has err "41 tensors of bfloat16 are compared as float32"
has out "casts    41 tensors      values fit the wider type"

# The way back is not a conversion that exists: every tensor has another type, which is said once.
expect 1 "$mckpt" verify v1 --against wide
has out "v1: not equal"
has out "the tensor is bfloat16 [16], in wide/release float32 [16]"
has out "tensors, "

# One value that is another one.
file=$(ls wide/release/*.distcp | head -n 1)
"$MCKPT_PYTHON" - "$file" <<'END'
import sys
with open(sys.argv[1], "r+b") as f:
    data = f.read()
    at = data.index(b"/data/0") + 1024
    f.seek(at)
    f.write(bytes([data[at] ^ 0x40]))
END
rm wide/release/mckpt_manifest.json
expect 1 "$mckpt" verify wide --against v1
has out "wide: not equal"
