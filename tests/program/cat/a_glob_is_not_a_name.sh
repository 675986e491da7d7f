#!/usr/bin/env bash
# cat prints one tensor: a glob gets no tensor, and the error says that it was not read as one.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 1 "$mckpt" cat "$model" '*norm.weight'
empty out
has err "as a glob it would match 9 tensors, but it is not read as a glob"
expect 1 "$mckpt" cat "$model" '*nothing*'
lacks err "as a glob"
expect 1 "$mckpt" ls "$model" 'q_proj'
has err "'*q_proj*' matches 2 tensors"
