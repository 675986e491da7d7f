#!/usr/bin/env bash
# A result that is one file replaces no file in the folder that it is made from; a new one may be there.
. "$MCKPT_SOURCE"/tests/support/common.inc

cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe hf
ln -s hf link
mkdir pt
expect 0 "$mckpt" convert safetensors-to-pt hf pt/model.pt --no-sync
echo other >pt/notes
state() { find . -type f -not -path './out' -not -path './err' -exec sha256sum {} + | sort; }
before=$(state)
refused() {
  for how in "" --dry-run; do
    expect 4 "$mckpt" convert "$@" --overwrite --no-sync $how
    has err "error[MC3003]"
    has err "the source from which it is made"
    [ "$(state)" = "$before" ] || fail "something changed: $*"
  done
}
refused safetensors-to-pt hf hf/config.json
refused safetensors-to-pt hf hf/model-00002-of-00002.safetensors
refused safetensors-to-pt hf link/model.safetensors.index.json
refused safetensors-to-pt hf/ "$PWD/link/../hf/config.json"
refused safetensors-to-pt hf/model-00001-of-00002.safetensors hf/model-00001-of-00002.safetensors
refused pt-to-safetensors pt pt/notes
refused pt-to-safetensors pt/model.pt pt/model.pt
ln pt/model.pt hard_link
before=$(state)
refused pt-to-safetensors pt/model.pt hard_link

# Nor in the folder of the model whose config is read.
refused to-safetensors pt/model.pt hf/config.json --assets hf
refused to-safetensors pt/model.pt hf/model-00001-of-00002.safetensors --assets link

expect 0 "$mckpt" convert pt-to-safetensors pt pt/model.safetensors --no-sync
expect 0 "$mckpt" convert safetensors-to-pt hf hf/new.pt --no-sync
expect 0 "$mckpt" convert pt-to-safetensors pt/model.pt pt/model.safetensors --no-sync --overwrite

# A new file has no name of the other format.
expect 2 "$mckpt" convert safetensors-to-pt hf new.safetensors
has err "a name such as model.pt"
expect 2 "$mckpt" convert pt-to-safetensors pt/model.pt new.pt
has err "a name such as model.safetensors"
