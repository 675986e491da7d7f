#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

expect 0 "$mckpt" pattern 'M-M-|M-M*-' --pp-size 2 --pp-rank 1
mv out hyphens
expect 0 "$mckpt" pattern 'M-M-|M-M*-' --pp_size 2 --pp_rank=1
cmp -s hyphens out || fail "--pp_size is not --pp-size"
# A value keeps its underscores, and so does what follows a lone --.
expect 2 "$mckpt" pattern 'M' --dialect=a_b
has err "a_b"
expect 1 "$mckpt" pattern -- --pp_size
has out "--pp_size"
