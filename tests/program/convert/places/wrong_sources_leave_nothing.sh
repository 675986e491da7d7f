#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc
. "$MCKPT_SOURCE"/tests/support/sparse_model.inc

sparse_model 2
convert=("$mckpt" convert safetensors-to-pt)
expect 3 "$mckpt" convert pt-to-safetensors model.safetensors x.safetensors
has err "pt-to-safetensors does not read this format"
only

expect 3 "${convert[@]}" no-such-file x.pt
expect 2 "$mckpt" convert
has err "MODE is missing"
expect 2 "$mckpt" convert safetensor-to-pt model.safetensors x.pt
has err 'did you mean `mckpt convert safetensors-to-pt`?'
expect 1 "${convert[@]}" model.safetensors x.pt --include 'no.*'
expect 1 "${convert[@]}" model.safetensors x.pt --exclude '*'
truncate -s -1 model.safetensors
expect 3 "${convert[@]}" model.safetensors x.pt
only
