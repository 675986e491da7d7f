#!/usr/bin/env bash
# export leaves config.json as it is; where its type differs from the tensors' type, a note says so. A type
# that is asked for is its, too.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 0 "$mckpt" convert hf-to-fsdp "$model" wide --dtype fp32 --no-sync -q
expect 0 "$mckpt" export wide kept --dtype keep --no-sync -q
has err "warning: config.json says bfloat16, but most values are float32"
cmp kept/config.json "$model/config.json"
expect 0 "$mckpt" export wide asked --dtype fp16 --no-sync -q
grep -q '"torch_dtype": "float16"' asked/config.json || fail "the config has not the type that was asked for"
expect 0 "$mckpt" export wide own --no-sync -q
empty err
expect 0 "$mckpt" export wide same --dtype bf16 --no-sync -q
empty err
expect 2 "$mckpt" export wide none --max-shard-size 0
has err "at least one byte"
# A tensor that is larger than a file should be: here embedding, head, and two projections of each layer, of 1,024 bytes.
expect 0 "$mckpt" export wide small --max-shard-size 1000 --no-sync
has err "files   6 tensors are larger than --max-shard-size, and each has a file of its own"
