#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

[ -c /dev/full ] || skip "there is no /dev/full"
for line in formats explain "formats --json" --help; do
  status=0
  "$mckpt" $line >/dev/full 2>err || status=$?
  [ $status = 5 ] || fail "exit status $status, not 5: $line"
  has err "error[MC3001]"
  has err "No space left on device"
done
