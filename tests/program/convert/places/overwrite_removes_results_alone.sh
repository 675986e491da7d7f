#!/usr/bin/env bash
# --overwrite removes what a result consists of. Any other file in the folder is named, and nothing is done.
. "$MCKPT_SOURCE"/tests/support/common.inc

cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe hf
echo 'class Model: pass' >hf/modeling_tiny.py
expect 0 "$mckpt" convert hf-to-fsdp hf run --no-sync
expect 0 "$mckpt" export run made --no-sync
state() { find . -not -path './out' -not -path './err' -exec ls -ld --time-style=+%s.%N {} + | sort -k7; }
refused() {  # FOLDER NAME COMMAND...
  local before name=$1 how
  shift
  before=$(state)
  for how in "" --dry-run; do
    expect 4 "$mckpt" "$@" --overwrite --no-sync $how
    has err "error[MC3003]"
    has err "not part of a checkpoint"
    has err "$name"
    [ "$(state)" = "$before" ] || fail "something changed: $*"
  done
}
foreign() {  # makes something foreign in a result, sees it refused, and takes it away again
  local folder=$1 name=$2
  shift 2
  mkdir -p "$(dirname "$folder/$name")"
  [ -e "$folder/$name" ] || echo mine >"$folder/$name"
  refused "$name" "$@"
  rm -r "${folder:?}/${name%%/*}"
}
for name in notes.txt thesis/chapter1.tex .git/HEAD pytorch_model.bin train.py hf_assets/deep/er/file; do
  foreign made "$name" export run made
done
mkdir made/empty && foreign made empty/ export run made
ln -s ../hf/config.json made/link.json && foreign made link.json export run made
for name in notes.txt logs/events optimizer.pt; do
  foreign run/release "$name" convert hf-to-fsdp hf run
done
echo mine >run/release/hf_assets/notes.txt
refused hf_assets/notes.txt convert hf-to-fsdp hf run
rm run/release/hf_assets/notes.txt

# Some are named, the rest are counted; of a folder that is not a checkpoint, all are foreign.
mkdir home
for i in $(seq 1 30); do echo "$i" >home/letter$i; done
echo '{}' >home/config.json
refused "letter20" export run home
has err "letter1"
lacks err "letter21"
has err "10 more"
lacks err "config.json"
rm home/config.json
cp hf/tokenizer_config.json hf/README.md home 2>/dev/null || echo '{}' >home/tokenizer_config.json
rm home/letter*
refused tokenizer_config.json export run home

# Results are replaced: with the code that the source has as well, and over what a real model's folder holds.
expect 0 "$mckpt" export run made --overwrite --no-sync
expect 0 "$mckpt" convert hf-to-fsdp hf run --overwrite --no-sync
cmp -s hf/modeling_tiny.py made/modeling_tiny.py || fail "the code is not there"
for name in tokenizer.json tokenizer_config.json tokenizer.model merges.txt vocab.json chat_template.jinja generation_config.json \
  special_tokens_map.json LICENSE README.md .gitattributes model-00001-of-00009.safetensors model.safetensors.index.json; do
  echo '{}' >made/$name
done
rm made/mckpt_manifest.json
expect 0 "$mckpt" export run made --overwrite --no-sync
[ ! -e made/merges.txt ] || fail "the old folder is still there"
mkdir -p run/iter_0000005 none
for name in .metadata metadata.json common.pt train_state.pt run_config.yaml __0_0.distcp; do echo old >run/iter_0000005/$name; done
expect 0 "$mckpt" convert hf-to-fsdp hf run --iteration 5 --overwrite --no-sync
expect 0 "$mckpt" export run none --overwrite --no-sync
