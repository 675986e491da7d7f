#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

# Whoever reads has gone before the first word is written.
for line in formats explain "formats --json" --help; do
  { sleep 0.1; status=0; "$mckpt" $line 2>err || status=$?; echo $status >status; } | true
  [ "$(cat status)" = 0 ] || fail "exit status $(cat status) with a closed pipe: $line"
  empty err
done
"$mckpt" formats 2>err | head -n 1 >out
empty err
[ "$(wc -l <out)" = 1 ] || fail "head got no line"
