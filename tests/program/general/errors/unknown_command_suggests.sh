#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

expect 2 "$mckpt" formts
has err "error[MC0002]"
has err 'did you mean `mckpt formats`?'
empty out
expect 2 "$mckpt" zzzzzzzzzzzz
lacks err "did you mean"

# A mode of convert, and words that other tools have for a command, are answered with the command.
expect 2 "$mckpt" reshard ckpt out --tp 2
has err 'did you mean `mckpt convert reshard`?'
# So are other spellings of a mode.
for spelt in hf2fsdp hf_to_fsdp HF2FSDP huggingface-to-megatron hf-2-dcp:to-dcp fsdp2hf:fsdp-to-hf dcp_to_hf:fsdp-to-hf \
  fsdp2-to-hf:fsdp-to-hf pt2safetensors:pt-to-safetensors torch2st:pt-to-safetensors safetensors2pt:safetensors-to-pt \
  verl-to-hf:fsdp-to-hf verl2megatron:to-fsdp dcp2safetensors:to-safetensors zero_to_safetensors:to-safetensors torch_save_to_dcp:to-dcp; do
  mode=${spelt#*:}
  [ "$mode" != "$spelt" ] || mode=hf-to-fsdp
  command="convert $mode"
  [ "$mode" != fsdp-to-hf ] || command="export SRC DST"
  expect 2 "$mckpt" convert "${spelt%:*}" a b
  has err "did you mean \`mckpt $command\`?"
  expect 2 "$mckpt" "${spelt%:*}" a b
  has err "did you mean \`mckpt $command\`?"
done
# Words of Python are answered with the mode.
for word in ranks:to-pt torch-file:safetensors-to-pt pt:to-pt hdf5:to-hdf5; do
  expect 2 "$mckpt" convert "${word%:*}" a b
  has err "did you mean \`mckpt convert ${word#*:}\`?"
done
# So are names of other tools, and one end alone.
for word in "convert-hf:convert hf-to-fsdp SRC DST" "merge:export SRC DST" "merge-weights:export SRC DST" \
  "merge_weights:export SRC DST" "merge_fsdp_weights:export SRC DST" "model_merger:export SRC DST" "consolidate:export SRC DST" "zero_to_fp32:export SRC DST --dtype fp32" \
  "zero_to_fp32.py:export SRC DST --dtype fp32" "convert_hf_to_fsdp:convert hf-to-fsdp" "convert_to_hf:export SRC DST" \
  "to-hf:export SRC DST" "mcore-to-hf:export SRC DST" "from_hf:convert hf-to-fsdp" "validate:verify PATH" "completion:completions SHELL"; do
  expect 2 "$mckpt" "${word%%:*}" a b
  has err "did you mean \`mckpt ${word#*:}\`?"
done
expect 2 "$mckpt" convert to-megatron a b
has err 'did you mean `mckpt convert to-fsdp`? It makes what Megatron-FSDP loads; `mckpt convert to-mcore` makes torch_dist.'
expect 2 "$mckpt" convert resard a b
has err 'did you mean `mckpt convert reshard`?'
expect 2 "$mckpt" convert '2' a b
lacks err "did you mean"
expect 2 "$mckpt" compare a b
has err 'did you mean `mckpt diff A B`?'
expect 2 "$mckpt" info a
has err 'did you mean `mckpt inspect PATH`?'
