#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

# Under --json and --jsonl an error is one object on stdout, with the words on stderr and the same exit status.
truncate -s 100 cut.safetensors
printf '\x40\x00\x00\x00\x00\x00\x00\x00{"w": {"dtype": "F32", "shape": [4], "data_offsets": [0, 16]}}  ' >short.safetensors
cat >check.py <<'PYTHON'
import json, re, sys
fields = ["code", "message", "file", "tensor", "offset", "expected", "found", "notes", "help"]
answer = json.load(open("out", encoding="utf-8"))
assert (answer["schema"], answer["ok"], list(answer)) == ("mckpt.error/1", False, ["schema", "ok", "error"]), answer
error, words = answer["error"], open("err", encoding="utf-8").read()
assert list(error) == fields, error
assert words.startswith(f"error[{error['code']}]: {error['message']}\n"), words
for name in ("file", "expected", "found", "help", "tensor"):
    assert error[name] is None or error[name] in words, name
assert all(note in words for note in error["notes"]), error
PYTHON

for line in "ls no-such-file" "ls cut.safetensors" "inspect short.safetensors" "formts" "explain MC9999" "ls" "ls --no-such-option x" \
  "stats short.safetensors no-such-tensor" "cat cut.safetensors 'w[0'"; do
  for flag in --json --jsonl; do
    for order in "$flag $line" "$line $flag"; do
      status=0 plain=0
      eval "\"\$mckpt\" $line" >out 2>err </dev/null || plain=$?
      empty out
      eval "\"\$mckpt\" $order" >out 2>err </dev/null || status=$?
      [ $status = $plain ] && [ $status -ge 2 ] || fail "exit status $status, without JSON $plain: $order"
      python check.py || fail "no object for the error of: $order"
    done
  done
done

# Behind -- it is not a flag.
expect 3 "$mckpt" ls -- --json
empty out
