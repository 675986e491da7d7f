#!/usr/bin/env bash
# Megatron loads what the tracker names: that a later iteration is not loaded any more is said. An iteration that
# follows is nothing to speak of.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
make() { expect 0 "$mckpt" convert hf-to-fsdp "$model" run --no-sync -q "$@"; }
make
empty err
make --iteration 3
empty err
make --iteration 5
empty err
make --iteration 4
has err "warning: the output folder has iteration 5, but Megatron will load iteration 4 from it"
[ "$(cat run/latest_checkpointed_iteration.txt)" = 4 ] || fail "the tracker does not name what was written last"
make --overwrite
has err "warning: the output folder has iteration 4, but Megatron will load release from it"
