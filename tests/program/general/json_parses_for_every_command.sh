#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

# Every example of every command, as JSON: an answer is one object that names its schema, no answer is no output.
cat >check.py <<'PYTHON'
import json, sys
command, status, lines = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "--jsonl"
text = open("out", encoding="utf-8").read()
if status > 1:
    command, lines = "error", False
for part in text.splitlines() if lines else [text]:
    answer = json.loads(part)
    if not lines:
        assert answer["schema"] == f"mckpt.{command}/1", answer["schema"]
        assert answer["ok"] is (status == 0), (answer["ok"], status)
PYTHON

# Examples name files that are not here; these are.
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
more_examples() {
  case $1 in inspect | ls | stats | verify) echo "$1 $model" ;; esac
}

answered=0
for command in $(commands); do
  while read -r line; do
    for flag in --json --jsonl; do
      status=0
      # The examples are written for a shell.
      eval "\"\$mckpt\" $flag $line" >out 2>err </dev/null || status=$?
      python check.py "$command" $status $flag || fail "exit status $status: mckpt $flag $line"
      [ $status -gt 1 ] || answered=$((answered + 1))
    done
  done < <(examples "$command" && more_examples "$command")
done
[ $answered -ge 20 ] || fail "only $answered examples gave an answer"
