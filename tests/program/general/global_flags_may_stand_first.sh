#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

expect 0 "$mckpt" formats --json
mv out behind
expect 0 "$mckpt" --json formats
cmp -s behind out || fail "--json before the command does something else"
