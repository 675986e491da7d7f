#!/usr/bin/env bash
# An option that means something only beside another one is not passed over in silence.
. "$MCKPT_SOURCE"/tests/support/common.inc

expect 2 "$mckpt" ls "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe --tp 2
has err "--tp has a meaning only with --as"
expect 2 "$mckpt" verify "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe --params-dtype auto
has err "--params-dtype has a meaning only with --against"
expect 0 "$mckpt" ls "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe --as megatron --tp 2
# The help in an error is the help of the mode.
expect 2 "$mckpt" convert hf-to-fsdp hf out --tpp 2
has err "mckpt convert hf-to-fsdp --help"
