#!/usr/bin/env bash
# Args of a model that is not a hybrid have no layer pattern, or None: a GPT checkpoint that became hybrid and
# came back is equal to what it was.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
layers=$(python -c 'import json, sys; print(json.load(open(sys.argv[1]))["num_hidden_layers"])' "$model/config.json")
pattern=$(for _ in $(seq "$layers"); do printf '*E'; done)
expect 0 "$mckpt" convert hf-to-fsdp "$model" run --no-sync
expect 0 "$mckpt" convert gpt-to-hybrid run hybrid --no-sync --pattern "$pattern"
expect 0 "$mckpt" convert hybrid-to-gpt hybrid back --no-sync
expect 0 "$mckpt" verify back --against run

# The same in the common.pt of a torch_dist save by a real run.
tar xf "$MCKPT_SOURCE/test_data/megatron_runs/dense.tar.xz"
expect 0 "$mckpt" convert gpt-to-hybrid dense/torch_dist hybrid_dist --no-sync --pattern '*-*-*-*-*-'
expect 0 "$mckpt" convert hybrid-to-gpt hybrid_dist back_dist --no-sync
expect 0 "$mckpt" verify back_dist --against dense/torch_dist
expect 1 "$mckpt" verify hybrid_dist --against dense/torch_dist
