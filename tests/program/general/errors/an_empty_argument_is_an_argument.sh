#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc

expect 2 "$mckpt" explain ""
has err "there is no error code ''"
expect 0 "$mckpt" pattern ""
has out "(empty pattern)"
expect 2 "$mckpt" pattern --from-ratios ""
has err "found    ''"
expect 2 "$mckpt" pattern "" --from-ratios 5,0,0
has err "exclude each other"
