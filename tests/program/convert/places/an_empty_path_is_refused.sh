#!/usr/bin/env bash
# An empty path, as an unset variable gives it, is not the root folder.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe

expect 2 "$mckpt" convert hf-to-fsdp "$model" ''
has err 'the path of the output is empty'
expect 2 "$mckpt" convert safetensors-to-pt "$model" ''
has err 'the path of the output is empty'
expect 2 "$mckpt" convert hf-to-fsdp '' made
[ ! -e made ]
expect 2 "$mckpt" inspect ''
has err 'the path of the checkpoint is empty'
