#!/usr/bin/env bash
# A code that has several causes lists them, each on lines of its own, with options as flags.
. "$MCKPT_SOURCE"/tests/support/common.inc

expect 0 "$mckpt" explain MC3005
has out "Cases:"
[ "$(grep -c '^- ' out)" = 5 ] || fail "MC3005 does not list its five cases"
has out "--weights-only leaves them out"
expect 0 "$mckpt" explain MC0101
lacks out "Cases:"
expect 0 "$mckpt" explain MC3005 --json
python -c '
import json
assert json.load(open("out"))["explanation"].count("\n- ") == 5
' || fail "the JSON does not have the cases"
# Damage that a conversion takes on request says how; other damage does not.
expect 0 "$mckpt" explain MC1317
tr '\n' ' ' < out | grep -e '--accept MC1317' >/dev/null || fail "MC1317 does not say how it is accepted"
expect 0 "$mckpt" explain MC1301
lacks out "--accept"
