#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

expect 0 "$mckpt" --help
empty err
[ "$(commands | wc -l)" -ge 4 ] || fail "only $(commands | wc -l) commands are listed"
mv out page
for again in "$mckpt" "$mckpt -h" "$mckpt help"; do
  expect 0 $again
  cmp -s page out || fail "$again is not the help page"
done
