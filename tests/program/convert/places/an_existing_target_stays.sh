#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc
. "$MCKPT_SOURCE"/tests/support/sparse_model.inc

sparse_model 1
echo old >model.pt
expect 4 "$mckpt" convert safetensors-to-pt model.safetensors model.pt
has err "error[MC3003]"
has err "--overwrite"
expect 4 "$mckpt" convert safetensors-to-pt model.safetensors model.pt --dry-run
[ "$(cat model.pt)" = old ] || fail "the target was touched"
only model.pt

mkdir folder
expect 2 "$mckpt" convert safetensors-to-pt model.safetensors folder
ln -s model.pt link
expect 4 "$mckpt" convert safetensors-to-pt model.safetensors link --overwrite
rm -r folder link
expect 0 "$mckpt" convert safetensors-to-pt model.safetensors model.pt --overwrite --dry-run
[ "$(cat model.pt)" = old ] || fail "--dry-run wrote"
expect 0 "$mckpt" convert safetensors-to-pt model.safetensors model.pt --overwrite
[ "$(cat out)" = model.pt ] || fail "the answer is not the path of the result"
expect 0 "$mckpt" verify model.pt
only model.pt

# One that cannot be replaced as a whole is not replaced in part.
echo old >model.pt
(
  ulimit -f 64
  expect 5 "$mckpt" convert safetensors-to-pt model.safetensors model.pt --overwrite
)
has err "error[MC3001]"
[ "$(cat model.pt)" = old ] || fail "the target was touched"
only model.pt
