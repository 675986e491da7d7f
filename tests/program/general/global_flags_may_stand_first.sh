#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

expect 0 "$mckpt" formats --json
mv out behind
expect 0 "$mckpt" --json formats
cmp -s behind out || fail "--json before the command does something else"

# Each global option that has a value takes it along.
for option in "--model-files shards" "--model_files shards" "--color never" "--progress none" "--model-files=single"; do
  # shellcheck disable=SC2086
  expect 0 "$mckpt" $option --json formats
  cmp -s behind out || fail "$option before the command does something else"
done
expect 2 "$mckpt" --model-files both formats
has err "--model-files" "equal"
expect 2 "$mckpt" --model-file shards formats
has err "did you mean --model-files"
