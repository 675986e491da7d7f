#!/usr/bin/env bash
# The totals of a layout count one tensor- and expert-parallel cell. They say so where there are several.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 0 "$mckpt" layout "$model" --dp 4
lacks out "one cell"
expect 0 "$mckpt" layout "$model" --tp 2 --ep 2 --dp 4 --rank 1
has out "one cell    tp 1 of 2, ep 1 of 2; these are its totals and not those of the whole model"
expect 0 "$mckpt" layout --help-all
has out "(under v2 fp32)"
lacks out "of a model that at run"
# Megatron-LM's own option for the rows of the vocabulary is taken.
has out "--make-vocab-size-divisible-by N"
