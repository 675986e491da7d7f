#!/usr/bin/env bash
# ls, stats, verify and inspect take several checkpoints; the last argument of ls and stats is a GLOB unless a file or
# folder has that name.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
cp -r "$model" a
cp -r "$model" b
cp -r "$MCKPT_SOURCE/test_data/dcp/plain" c

for command in ls stats; do
  expect 0 "$mckpt" $command a b '*.norm.weight'
  [ "$(grep -c '^model.norm.weight' out)" = 2 ] || fail "$command does not list the tensor of both"
  [ "$(grep -xc '[ab]' out)" = 2 ] || fail "$command does not name both paths"
  expect 0 "$mckpt" $command a '*.norm.weight'
  ! grep -qx '[ab]' out || fail "$command names its only path"

  expect 0 "$mckpt" $command a b '*.norm.weight' --jsonl
  python -c '
import json
rows = [json.loads(line) for line in open("out")]
assert [(r["path"], r["name"]) for r in rows] == [("a", "model.norm.weight"), ("b", "model.norm.weight")], rows
' || fail "the lines of $command do not name their checkpoints"

  expect 0 "$mckpt" $command a c --json
  python -c '
import json
answer = json.load(open("out"))
assert answer["ok"] and [(c["path"], c["ok"]) for c in answer["checkpoints"]] == [("a", True), ("c", True)]
assert [len(c["tensors"]) for c in answer["checkpoints"]] == [45, 39]
' || fail "the answer of $command does not have both checkpoints"

  expect 1 "$mckpt" $command a modle
  has err "'modle' is taken for the GLOB, because no file or folder has that name"
  expect 1 "$mckpt" $command a '*.nrom.weight'
  lacks err "taken for the GLOB"
done

expect 2 "$mckpt" ls a b --as megatron
has err "--as is about one PATH"

expect 0 "$mckpt" verify a c
has out "a: sound"
has out "c: sound"
printf x | dd of=b/model.safetensors.index.json bs=1 conv=notrunc status=none
expect 1 "$mckpt" verify a b c
has out "a: sound"
has out "b: 1 check failed"
has out "c: sound"
expect 1 "$mckpt" verify a b --json
python -c '
import json
answer = json.load(open("out"))
assert not answer["ok"] and [(c["path"], c["ok"]) for c in answer["checkpoints"]] == [("a", True), ("b", False)]
' || fail "the answer of verify does not have both checkpoints"
expect 2 "$mckpt" verify a c --against a
has err "--against compares one PATH"
