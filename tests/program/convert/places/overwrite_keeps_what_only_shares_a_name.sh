#!/usr/bin/env bash
# --overwrite removes a file of any name only where the new result has it at the same place.
. "$MCKPT_SOURCE"/tests/support/common.inc

cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe hf
echo theirs >hf/notes.txt
expect 0 "$mckpt" convert hf-to-fsdp hf run --no-sync
expect 0 "$mckpt" export run made --no-sync
refused() {  # FILE COMMAND...
  local file=$1
  shift
  mkdir -p "$(dirname "$file")"
  echo mine >"$file"
  expect 4 "$mckpt" "$@" --overwrite --no-sync
  has err "error[MC3003]"
  has err "notes.txt"
  [ "$(cat "$file")" = mine ] || fail "$file is gone"
  rm "$file"
}
refused run/release/notes.txt convert hf-to-fsdp hf run
refused made/hf_assets/notes.txt export run made
rmdir made/hf_assets
# Where the new result has it as well, it is a part of both.
expect 0 "$mckpt" convert hf-to-fsdp hf run --overwrite --no-sync
expect 0 "$mckpt" export run made --overwrite --no-sync
cmp hf/notes.txt made/notes.txt
