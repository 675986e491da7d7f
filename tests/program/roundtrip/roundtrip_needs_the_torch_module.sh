#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

# The program alone, without the modules beside it.
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
cp "$mckpt" alone
expect 3 ./alone roundtrip "$model"
empty out
has err 'error[MC0004]: the torch module was not found'
has err 'scripts/bootstrap --torch'
has err '`mckpt env` shows which modules are here'
# With CUDA and a GPU it is done there.
if ! "$mckpt" env | grep '^cuda .*' >/dev/null || ! ls /dev/nvidia0 >"$t/out" 2>&1; then
  expect 3 "$mckpt" roundtrip "$model" --device cuda
  has err 'error[MC0004]'
fi
expect 2 "$mckpt" roundtrip "$model" --device tpu
