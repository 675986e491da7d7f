#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

for command in $(commands); do
  expect 2 "$mckpt" "$command" --no-such-option
  empty out
  has err "error[MC0001]"
  has err "mckpt $command --help"
done
