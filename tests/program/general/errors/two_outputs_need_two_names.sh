#!/usr/bin/env bash
# One file for two outputs of a command, under whatever path: refused before anything is written.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 0 "$mckpt" convert hf-to-fsdp "$model" ck --no-sync -q
mkdir sub && ln -s sub link
refused() {
  expect 2 "$mckpt" "$@"
  has err "two outputs have one name"
  [ ! -e h ] && [ ! -e k.json ] && [ ! -e sub/k.json ] || fail "something was written: $*"
}
refused export ck h --report k.json --card k.json
refused export ck h --report k.json --card ./k.json
refused export ck h --report link/k.json --card "$PWD/sub/k.json"
refused convert hf-to-fsdp "$model" h --card k.json --card k.md --card k.json
refused verify ck --report k.json --report ./k.json
expect 0 "$mckpt" export ck h --report k.json --card c.json --card c.md --no-sync -q
has_schema() { grep -q "$2" "$1" || fail "$1 is no $2"; }
has_schema k.json mckpt.export/1
has_schema c.json mckpt.card/1
