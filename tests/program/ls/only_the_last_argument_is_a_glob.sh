#!/usr/bin/env bash
# A glob at another place is not a path: the error says where globs are taken.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 3 "$mckpt" ls "$model" '*norm*' '*mlp*'
empty out
has err "only the last argument can be a GLOB"
expect 0 "$mckpt" ls "$model" --regex 'model.norm|mlp.gate.weight' -q
[ "$(wc -l < out)" = 3 ] || fail "A|B does not choose what A or B matches"

# inspect takes none; ls and --map do.
expect 3 "$mckpt" inspect "$model" '*norm*'
empty out
has err "mckpt ls PATH '*norm*'"
has err "--map='*norm*'"
# Addresses are not fetched.
expect 3 "$mckpt" inspect https://huggingface.co/Qwen/Qwen3-0.6B
has err "mckpt downloads nothing"
