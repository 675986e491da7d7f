#!/usr/bin/env bash
# A checkpoint lists the tensors of the model that it was made of: a model with another one is not what an export of
# it writes. A DCP folder and a single file have nothing to be compared by.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
"$mckpt" convert hf-to-fsdp "$model" run --no-sync -q
expect 0 "$mckpt" verify "$model" --against run
sed -i 's/layers\.0\.self_attn\.v_proj/layers.0.self_attn.v_zroj/' run/release/hf_assets/mckpt_tensors.json
rm run/release/mckpt_manifest.json
expect 1 "$mckpt" verify "$model" --against run
has out "v_proj.weight': the tensor is not in the model that the checkpoint was made of"
expect 0 "$mckpt" verify "$model" --against run --assets "$model"
file=$model/model-00001-of-00002.safetensors
expect 3 "$mckpt" verify run --against "$file"
has err "the tensors and the model do not match: 24 missing"
expect 3 "$mckpt" verify "$file" --against run
has err "model-00001-of-00002.safetensors"
