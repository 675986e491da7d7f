#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

expect 2 "$mckpt" formts
has err "error[MC0002]"
has err 'did you mean `mckpt formats`?'
empty out
expect 2 "$mckpt" zzzzzzzzzzzz
lacks err "did you mean"
