#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

escape=$(printf '\033[')
expect 2 "$mckpt" formts
lacks err "$escape"
expect 2 "$mckpt" formts --color=always
has err "$escape"
expect 2 "$mckpt" --color=always formts
has err "$escape"
expect 2 env CLICOLOR_FORCE=1 "$mckpt" formts --color never
lacks err "$escape"
