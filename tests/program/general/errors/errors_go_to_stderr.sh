#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

for line in "formts" "formats --no-such-option" "explain MC9999" "ls no-such-file"; do
  status=0
  "$mckpt" $line >out 2>err </dev/null || status=$?
  [ $status -ge 2 ] || fail "exit status $status of: $line"
  empty out
  grep -qE '^error\[MC[0-9]{4}\]: ' err || fail "no error with a code from: $line"
  grep -qE 'more: mckpt explain MC[0-9]{4}$' err || fail "no way on from: $line"
  code=$(sed -n 's/^error\[\(MC[0-9]*\)\].*/\1/p' err)
  expect 0 "$mckpt" explain "$code"
done
