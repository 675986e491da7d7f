#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

expect 0 "$mckpt" formats
expect 0 "$mckpt" --version
grep -qE '^mckpt [0-9]+\.[0-9]+\.[0-9]+$' out || fail "--version is not one line with the version"
[ "$(wc -l <out)" = 1 ] || fail "--version is more than one line"
expect 1 "$mckpt" pattern X           # the answer is negative
expect 2 "$mckpt" explain MC9999x     # usage
expect 2 "$mckpt" --json              # a command is missing
expect 2 "$mckpt" layout 4x4 --world 2 --dtype foo
expect 3 "$mckpt" ls no-such-file     # input
