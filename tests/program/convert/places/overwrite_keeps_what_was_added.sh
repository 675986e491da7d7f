#!/usr/bin/env bash
# A result has a list of its files: --overwrite removes these alone. A file that was added later is named and stays,
# whatever it is called.
. "$MCKPT_SOURCE"/tests/support/common.inc

cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe hf
echo '{{ theirs }}' >hf/chat_template.jinja
expect 0 "$mckpt" convert hf-to-fsdp hf run --no-sync
expect 0 "$mckpt" export run made --no-sync
for name in README.md LICENSE tokenizer.model model-00009-of-00009.safetensors hf_assets/config.json; do
  mkdir -p made/hf_assets
  echo mine >made/$name
  expect 4 "$mckpt" export run made --overwrite --no-sync
  has err "error[MC3003]"
  has err "$name"
  [ "$(cat made/$name)" = mine ] || fail "$name is gone"
  rm made/$name
done
rmdir made/hf_assets
echo mine >run/release/README.md
expect 4 "$mckpt" convert hf-to-fsdp hf run --overwrite --no-sync
has err README.md
rm run/release/README.md

# A file in the list is replaced, also by a result that has it no longer.
rm hf/chat_template.jinja
expect 0 "$mckpt" convert hf-to-fsdp hf run --overwrite --no-sync
expect 0 "$mckpt" export run made --overwrite --no-sync
[ ! -e made/chat_template.jinja ] || fail "the old template is still there"
expect 0 "$mckpt" verify made --against hf
