#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

for line in formats "explain MC0001" "pattern M*-" env --help --version; do
  expect 0 "$mckpt" $line
  empty err
  [ -s out ] || fail "no answer from: $line"
done
