#!/usr/bin/env bash
# Shards that are empty, or not there: by the index, and without one by their names
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
cp -r "$model" empty
printf '\2\0\0\0\0\0\0\0{}' > empty/model-00002-of-00002.safetensors
expect 1 "$mckpt" verify empty
has out "problem[MC1107]"
cp -r "$model" none
echo '{"weight_map": {}}' > none/model.safetensors.index.json
expect 1 "$mckpt" verify none
has out "the weight_map names no tensor"
for lost in 1 2; do
  mkdir "without_$lost"
  cp "$model/model-0000$((3 - lost))-of-00002.safetensors" "without_$lost"
  expect 1 "$mckpt" verify "without_$lost"
  has out "problem[MC1106]: model-0000$lost-of-00002.safetensors"
  has out "FAIL  files    1 of 2 files "
  lacks out "  index "
  cp "$model"/*.json "without_$lost"
  expect 1 "$mckpt" verify "without_$lost"
  has out "FAIL  files    1 of 2 files "
  has out "pass  format   1 file "
  has out "warn  index    $([ $lost = 1 ] && echo 23 || echo 22) tensors"
  has out "$([ $lost = 1 ] && echo 22 || echo 23) of 45 tensors are in files that are missing"
  expect 1 "$mckpt" inspect "without_$lost"
  has out "safetensors folder | 1 of 2 files |"
done
# "./" before a name leads nowhere, and transformers reads it.
cp -r "$model" dotted
sed -i 's#"model-00001#"./model-00001#' dotted/model.safetensors.index.json
expect 0 "$mckpt" verify dotted
has out "pass  index    45 tensors"
rm dotted/model-00001-of-00002.safetensors
expect 1 "$mckpt" verify dotted
has out "problem[MC1106]: model-00001-of-00002.safetensors"
mkdir index_alone
cp "$model"/*.json index_alone
expect 1 "$mckpt" verify index_alone
has out "FAIL  files    0 of 2 files "
has out "warn  index    index against files"
lacks out "nothing to check"
# One of them alone is whole by itself, and says that it is one of several.
expect 0 "$mckpt" verify "$model/model-00002-of-00002.safetensors"
has out "shards   one of 2 files of a model by its name; the others were not read"
has out "sound, but the other shards were not read"
mkdir first
cp "$model/model-00002-of-00002.safetensors" first/m-00002-of-00003.safetensors
cp "$model/model-00001-of-00002.safetensors" first/m-00003-of-00003.safetensors
expect 1 "$mckpt" verify first
has out "problem[MC1106]: m-00001-of-00003.safetensors"
lacks out "problem[MC1106]: m-00002"
# Names that promise more files than anybody has: few words, and soon.
mkdir many
for n in $(seq 30); do cp "$model/model-00002-of-00002.safetensors" "many/s$n-00001-of-99999.safetensors"; done
expect 1 timeout 20 "$mckpt" inspect many --json
[ "$(grep -o '"MC1106"' out | wc -l)" = 30 ] || fail "not one finding for each set"
mkdir some
cp "$model/model-00002-of-00002.safetensors" some/m-00003-of-00200.safetensors
expect 1 "$mckpt" verify some -v
has out "m-00050-of-00200.safetensors"
lacks out "m-00051-of-00200.safetensors"
has out "FAIL  files    1 of 200 files"
has out "149 more shards of m- are missing"
