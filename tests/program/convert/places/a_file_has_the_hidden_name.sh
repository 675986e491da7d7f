#!/usr/bin/env bash
# A file or a link of the user that has the hidden name in which a single file is made: the error names it, and it stays.
. "$MCKPT_SOURCE"/tests/support/common.inc

cp "$MCKPT_SOURCE"/test_data/pt/one_tensor.pt a.pt
for made in file link; do
  rm -rf .out.safetensors.mckpt-tmp
  [ $made = file ] && echo mine >.out.safetensors.mckpt-tmp || ln -s /tmp .out.safetensors.mckpt-tmp
  for words in "" --dry-run --overwrite; do
    expect 4 "$mckpt" convert pt-to-safetensors a.pt out.safetensors --no-sync $words
    has err "error[MC3003]: the result is made in a hidden folder, whose name a file or a link has"
    has err ".out.safetensors.mckpt-tmp"
    has err "move it away, or choose another name for the result"
    [ ! -e out.safetensors ] || fail "something was written"
  done
  [ $made = file ] && [ "$(cat .out.safetensors.mckpt-tmp)" = mine ] || [ -L .out.safetensors.mckpt-tmp ] || fail "$made is gone"
done
rm .out.safetensors.mckpt-tmp
expect 0 "$mckpt" convert pt-to-safetensors a.pt out.safetensors --no-sync
