#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

# diff A B GLOB reads and judges the tensors that the GLOB chooses by the names of A, or of the model's folder; objects and
# files are not compared, and the answer says so.
"$mckpt" example a >out
cp -r a b
python - <<'PYTHON'
with open("b/model-00001-of-00002.safetensors", "r+b") as f:  # the last tensor of the file: a layer norm
    f.seek(-2, 2)
    f.write(b"\x12\x34")
with open("b/config.json", "a") as f:
    f.write("\n")
PYTHON
"$mckpt" convert hf-to-fsdp a ckpt --tp 2 --ep 2 --no-sync -q >out
expect 1 "$mckpt" diff a b --json
grep -o '"name": "model[^"]*"' out >changed
[ "$(wc -l <changed)" = 1 ] || fail "not one tensor differs"
name=$(sed 's/.*"\(model.*\)"/\1/' changed)

expect 1 "$mckpt" diff a b "$name"
has out "1 of 1 tensor that matches '$name' differs"
lacks out config.json
expect 0 "$mckpt" diff a b '*.layers.1.*'
has out "equal: all 21 tensors that match '*.layers.1.*'"
has out "compared: by name; other tensors, objects and files are not"
expect 0 "$mckpt" diff a b --regex 'layers\.1\..*(up|down)_proj' --json
has out '"choice": "layers\\.1\\..*(up|down)_proj"'
has out '"tensors": 8'

# Beside a checkpoint of Megatron the names are the model's, in both orders.
expect 1 "$mckpt" diff ckpt b '*layers.0.*' --json
has out '"differ": 1'
has out '"choice": "*layers.0.*"'
expect 0 "$mckpt" diff ckpt b '*layers.1.*' --json
has out '"tensors": 21'
for order in "ckpt b" "b ckpt"; do
  expect 1 "$mckpt" diff $order "$name"
  has out "1 of 1 tensor that matches '$name' differs"
done
expect 0 "$mckpt" diff b ckpt '*layers.1.*'
has out "equal: all 21 tensors"

expect 0 "$mckpt" diff a a --html page.html
has err "page    page.html"

# A word that is not a GLOB.
expect 2 "$mckpt" diff a b ckpt
has err "two checkpoints are compared, and this is a third one"
expect 2 "$mckpt" diff a b nothing/c.safetensors
has err "a third one"
expect 2 "$mckpt" diff a b --regex
expect 1 "$mckpt" diff a b layers.0
has err "a glob has to match the whole name: '*layers.0*' matches 21 tensors"
expect 1 "$mckpt" diff a b '*.{q,k}_proj.*'
has err "braces are plain characters in a glob"
has err "by the names under which the two checkpoints are compared"
expect 2 "$mckpt" diff '*q_proj*' a b
has err "a GLOB comes behind the checkpoints"
for command in ls stats; do
  expect 2 "$mckpt" $command '*q_proj*' a
  has err "PATH... [GLOB]"
done
expect 1 "$mckpt" stats "$MCKPT_SOURCE"/test_data/quantized/gpt_oss '*_scales'
has err "--raw   shows what is stored, with 4 tensors"
