#!/usr/bin/env bash
# A file of a folder with a list of digests is judged by it, also where the file alone is converted.
. "$MCKPT_SOURCE"/tests/support/common.inc

expect 0 "$mckpt" convert hf-to-fsdp "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe run --no-sync
expect 0 "$mckpt" export run made --max-shard-size 5GB --no-sync
expect 0 "$mckpt" convert safetensors-to-pt made/model.safetensors whole.pt --no-sync
damage() { printf '\x55' | dd of=made/model.safetensors bs=1 seek="$1" conv=notrunc status=none; }
bytes=$(stat -c %s made/model.safetensors)
damage $((bytes - 100))
for source in made made/model.safetensors; do
  expect 3 "$mckpt" convert safetensors-to-pt $source out.pt --no-sync
  has err "error[MC1203]"
  [ ! -e out.pt ] || fail "something was written"
done
rm made/mckpt_manifest.json
expect 0 "$mckpt" convert safetensors-to-pt made/model.safetensors out.pt --no-sync
