#!/usr/bin/env bash
# A save of torch DCP in the folder of a Hugging Face model: some commands would read one and some the other, so that "sound" and "equal"
# would be said of another model than the one that is converted. Every command refuses the folder, or reads the one that is chosen.
. "$MCKPT_SOURCE"/tests/support/common.inc

cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe hf
"$mckpt" convert to-dcp hf dcp --no-sync -q
cp -r hf both
cp dcp/.metadata dcp/*.distcp both

for command in "inspect both" "ls both" "stats both" "diff both hf" "diff hf both" \
  "export both made" "convert hf-to-fsdp both made" "convert to-fsdp both made" "convert to-dcp both made" \
  "convert to-hdf5 both made.h5" "convert to-safetensors both made.safetensors" "convert hf-to-fsdp both made --dry-run"; do
  # shellcheck disable=SC2086
  expect 3 "$mckpt" $command
  has err "error[MC1114]"
  has err "the folder holds two models"
  [ ! -e made.h5 ] && [ ! -e made.safetensors ] && [ ! -e made ] || fail "$command wrote something"
done
expect 1 "$mckpt" verify both
has out "problem[MC1114]"
expect 1 "$mckpt" verify both --json
has out MC1114
expect 1 "$mckpt" verify both --against hf
has out "not proven equal"
expect 3 "$mckpt" verify hf --against both
has err "error[MC1114]"

# The weights of the model are read where they are chosen: by all commands the same.
expect 1 "$mckpt" diff both hf --model-files shards
has out "no tensor differs"
expect 0 "$mckpt" verify both --against hf --model-files shards
expect 0 "$mckpt" convert hf-to-fsdp both run --model-files shards --no-sync
expect 0 "$mckpt" verify run --against hf

# So is the save, by a path that names it.
expect 0 "$mckpt" inspect both/.metadata
has out "DCP"
expect 0 "$mckpt" verify both/.metadata --against hf
expect 0 "$mckpt" export both/.metadata exported --assets hf --no-sync
expect 0 "$mckpt" verify exported --against hf

# Safetensors of another kind beside a save do not make a second model.
cp -r dcp with_adapter
cp hf/config.json with_adapter
touch with_adapter/random_states.safetensors
expect 0 "$mckpt" inspect with_adapter

# Weights or a config alone are files beside a save.
rm both/config.json
expect 0 "$mckpt" verify both
cp hf/config.json dcp
expect 0 "$mckpt" verify dcp
# Weights of another program count too.
touch dcp/pytorch_model.bin
expect 1 "$mckpt" verify dcp
has out "problem[MC1114]"
