#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

expect 2 "$mckpt" formts
has err "error[MC0002]"
has err 'did you mean `mckpt formats`?'
empty out
expect 2 "$mckpt" zzzzzzzzzzzz
lacks err "did you mean"

# A mode of convert, and words that other tools have for a command, are answered with the command.
expect 2 "$mckpt" reshard ckpt out --tp 2
has err 'did you mean `mckpt convert reshard`?'
expect 2 "$mckpt" diff a b
has err 'did you mean `mckpt verify PATH --against SRC`?'
expect 2 "$mckpt" info a
has err 'did you mean `mckpt inspect PATH`?'
