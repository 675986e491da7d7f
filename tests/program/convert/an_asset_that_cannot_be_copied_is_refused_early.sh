#!/usr/bin/env bash
# An asset that is not a file is refused before anything is written.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
cp -r "$model" model
"$mckpt" convert hf-to-fsdp model ck --tp 2 -q

refused() { # what, how the message says it
  for command in "convert hf-to-fsdp model made" "convert hf-to-fsdp model made --dry-run" "export ck made --assets model" \
    "convert reshard ck made --dp 2 --assets model"; do
    expect 3 "$mckpt" $command
    has err "$1"
    has err "$2"
    [ ! -e made ] && [ -z "$(ls -A | grep mckpt-tmp || true)" ] || fail "$1: something was left behind: $(ls -A .)"
  done
  rm "model/$1"
}

mkfifo model/pipe.json && refused pipe.json "a pipe or a device"
ln -s /etc/hostname model/outside.txt && refused outside.txt "leads outside"
ln -s gone.txt model/dangling.txt && refused dangling.txt "leads nowhere"
expect 0 "$mckpt" convert hf-to-fsdp model made --tp 2

# Links that stay in the folder, or in the cache of the hub, are files like others.
mkdir -p models--a--b/blobs models--a--b/snapshots/1
cp model/* models--a--b/blobs/
for file in model/*; do ln -s "../../blobs/$(basename "$file")" models--a--b/snapshots/1/; done
expect 0 "$mckpt" convert hf-to-fsdp models--a--b/snapshots/1 cached --tp 2
cmp cached/release/mckpt_manifest.json made/release/mckpt_manifest.json || fail "the assets of a cache are others"
