#!/usr/bin/env bash
# One of several paths that cannot be opened gets its error, and the others get their answers.
. "$MCKPT_SOURCE"/tests/support/common.inc
cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe a
cp -r "$MCKPT_SOURCE"/test_data/dcp/plain c

for command in verify inspect ls stats; do
  expect 3 "$mckpt" $command a gone.pt c
  has err "error[MC1001]: there is no such file or folder"
  has err "gone.pt"
  expect 3 "$mckpt" $command a gone.pt c --json
  python -c '
import json
answer = json.load(open("out"))
assert not answer["ok"]
assert [(c["path"], c["ok"], "error" in c) for c in answer["checkpoints"]] == [
    ("a", True, False), ("gone.pt", False, True), ("c", True, False)], answer["checkpoints"]
assert answer["checkpoints"][1]["error"]["code"] == "MC1001"
' || fail "the answer of $command does not have all paths"
  expect 3 "$mckpt" $command gone.pt --json
  has out '"schema": "mckpt.error/1"'
done

expect 3 "$mckpt" verify a gone.pt c
has out "a: sound"
has out "gone.pt: cannot be verified: there is no such file or folder"
has out "c: sound"
has err "each path was verified by itself"
expect 3 "$mckpt" ls a gone.pt
has out "model.norm.weight"
expect 3 "$mckpt" ls a gone/model
has err "there is no such file or folder"
