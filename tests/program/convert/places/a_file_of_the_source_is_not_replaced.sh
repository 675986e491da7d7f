#!/usr/bin/env bash
# A result that is one file replaces no file in the folder that it is made from, and no file of weights is made there: the folder would be
# another model. A file beside a file that is converted may be new.
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

before=$(state)
refused to-safetensors hf hf/model.safetensors --dtype fp16
has err "would be written into the source from which it is made"
has err "choose an output outside of the source"
refused pt-to-safetensors pt pt/model.safetensors
refused safetensors-to-pt hf hf/new.pt
refused safetensors-to-pt hf link/pytorch_model.bin
refused safetensors-to-pt hf hf/deep/new.pt
expect 4 "$mckpt" convert to-safetensors pt/model.pt hf/more.safetensors --assets hf --no-sync
has err "would be written into a folder that is read, such as that of the assets"
expect 4 "$mckpt" convert to-safetensors hf hf/model.safetensors --json --no-sync
has out '"code": "MC3003"'
(cd hf && expect 4 "$mckpt" convert to-safetensors . model.safetensors --no-sync) || exit 1
[ "$(state)" = "$before" ] || fail "something was written"
expect 0 "$mckpt" verify hf

# An archive is nothing that a program would load for the folder, and a file that was named has no folder.
expect 0 "$mckpt" convert to-hdf5 hf hf/archive.h5 --no-sync
expect 0 "$mckpt" convert pt-to-safetensors pt/model.pt pt/model.safetensors --no-sync
expect 0 "$mckpt" convert pt-to-safetensors pt/model.pt pt/model.safetensors --no-sync --overwrite

# A new file has no name of the other format.
expect 2 "$mckpt" convert safetensors-to-pt hf new.safetensors
has err "a name such as model.pt"
expect 2 "$mckpt" convert pt-to-safetensors pt/model.pt new.pt
has err "a name such as model.safetensors"
