#!/usr/bin/env bash
# Files of torch that are one of several by their names, of which others are lost
. "$MCKPT_SOURCE"/tests/support/common.inc
file=$MCKPT_SOURCE/test_data/pt/one_tensor.pt
set_of() {
  rm -rf saved
  mkdir saved
  for name; do cp "$file" "saved/$name"; done
}
set_of pytorch_model-00001-of-00002.bin
expect 1 "$mckpt" verify saved
has out "shards of pytorch_model are missing: 1 of 2 are there"
set_of a-00001-of-00002.bin b-00001-of-00002.bin
expect 1 "$mckpt" verify saved
has out "shards of b are missing: 1 of 2 are there"
set_of model_world_size_4_rank_0.pt
expect 1 "$mckpt" verify saved
has out "files of model are missing: 1 of 4 ranks are there"
set_of model_rank_0.pt model_rank_2.pt
expect 1 "$mckpt" verify saved
has out "files of model are missing: 2 of 3 ranks are there"
set_of model_rank_0.pt model_rank_1.pt model_rank_01.pt
expect 1 "$mckpt" verify saved
has out "is of rank 1, and so is "
set_of pytorch_model-00001-of-00001.bin
expect 0 "$mckpt" verify saved

# The index of shards: a tensor that no shard has, one that is in another shard, and one that it does not name.
index() { echo "{\"metadata\": {}, \"weight_map\": {$1}}" >saved/pytorch_model.bin.index.json; }
set_of pytorch_model-00001-of-00001.bin
name=$("$mckpt" ls saved --json | sed -n 's/.*"name": "\([^"]*\)".*/\1/p' | head -n 1)
index "\"$name\": \"pytorch_model-00001-of-00001.bin\""
expect 0 "$mckpt" verify saved
index "\"$name\": \"pytorch_model-00001-of-00001.bin\", \"lost.weight\": \"pytorch_model-00001-of-00001.bin\""
expect 1 "$mckpt" verify saved
has out "problem[MC1107]: pytorch_model-00001-of-00001.bin: tensor 'lost.weight': the tensor is not in the shard that the index names"
expect 3 "$mckpt" convert to-safetensors saved saved.safetensors
index "\"$name\": \"pytorch_model-00001-of-00001.bin\", \"gone.weight\": \"pytorch_model-extra.bin\""
expect 1 "$mckpt" verify saved
has out "pytorch_model-extra.bin: the index names this file, which is not one of the shards"
index "\"other\": \"pytorch_model-00001-of-00001.bin\""
expect 1 "$mckpt" verify saved
has out "the index does not name the tensor (not listed)"
index "\"$name\": \"../pytorch_model-00001-of-00001.bin\""
expect 1 "$mckpt" verify saved
has out "pytorch_model.bin.index.json"

# Megatron's folders: a rank without its file.
rm -rf saved
mkdir -p saved/mp_rank_00 saved/mp_rank_01
cp "$file" saved/mp_rank_00/model_optim_rng.pt
cp "$file" saved/mp_rank_01/distrib_optim.pt
expect 1 "$mckpt" verify saved
has out "problem[MC1106]: mp_rank_01/model_optim_rng.pt: the rank's file is missing: its folder has no model_optim_rng.pt"
rm saved/*/*
expect 1 "$mckpt" verify saved
has out "problem[MC1106]: mp_rank_00: the rank's file is missing: its folder has no .pt file"
