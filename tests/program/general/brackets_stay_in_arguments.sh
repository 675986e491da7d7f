#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

# A shape as Python prints it is not a list of two shapes.
expect 2 "$mckpt" layout '[10,4]'
has err "found    '[10,4]'"
expect 2 "$mckpt" layout '{}'
has err "found    '{}'"
expect 3 "$mckpt" ls '[no-such-file]'
has err "[no-such-file]"
expect 2 "$mckpt" layout 10 --world '[2]'
has err "found    '[2]'"
expect 2 "$mckpt" layout 10 --world='{}'
has err "found    '{}'"
expect 0 "$mckpt" pattern '[*-]' --json
has out '"main_pattern": "[*-]"'
