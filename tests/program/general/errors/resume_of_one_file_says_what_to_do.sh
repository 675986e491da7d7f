#!/usr/bin/env bash
# A conversion to one file has no --resume: the error says what to do, and the next run removes what an interrupted one left.
. "$MCKPT_SOURCE"/tests/support/common.inc
source=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 2 "$mckpt" convert to-safetensors "$source" one.safetensors --resume
has err "there is no option '--resume'"
has err "repeat the command without the option"
[ ! -e one.safetensors ] || fail "a file was written"
expect 0 "$mckpt" convert to-safetensors "$source" whole.safetensors --no-sync -q
mkdir .one.safetensors.mckpt-tmp
head -c 3000 whole.safetensors > .one.safetensors.mckpt-tmp/one.safetensors
expect 0 "$mckpt" convert to-safetensors "$source" one.safetensors --no-sync -q
cmp one.safetensors whole.safetensors || fail "another file than that of a run that was not interrupted"
[ ! -e .one.safetensors.mckpt-tmp ] || fail "the unfinished file is still there"
