#!/usr/bin/env bash
# The folder of a model in a hub cache, models--org--name, stands for its snapshot wherever a model is named: as a source, as
# --assets, and as the other side of a comparison.
. "$MCKPT_SOURCE/tests/support/common.inc"
cp -r "$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe" plain
hub=hub/models--o--n
mkdir -p $hub/blobs $hub/refs $hub/snapshots/abc $hub/snapshots/old
for file in plain/*; do
  blob=$(basename "$file" | md5sum | cut -c1-32)
  cp "$file" "$hub/blobs/$blob"
  ln -s "../../blobs/$blob" "$hub/snapshots/abc/$(basename "$file")"
done
printf abc >$hub/refs/main

expect 0 "$mckpt" convert hf-to-fsdp plain fsdp --tp 2 --no-sync -q
expect 0 "$mckpt" convert to-mcore plain mcore --tp 2 --no-sync -q
for words in "hf-to-fsdp $hub result --tp 2" "to-mcore $hub result --tp 2" "to-pt $hub result --tp 2" "to-dcp $hub result" "to-safetensors $hub result" \
             "quantize $hub result --to fp8-block" "reshard fsdp result --assets $hub --tp 1" "to-hdf5 $hub result"; do
  expect 0 "$mckpt" convert $words --no-sync -q
  # The same of the plain folder, byte by byte but for what names it.
  expect 0 "$mckpt" convert ${words//$hub/plain} --no-sync -q --overwrite -n
  rm -rf result
done
expect 0 "$mckpt" export mcore result --assets $hub --no-sync -q
for file in plain/*; do cmp "$file" "result/$(basename "$file")"; done
expect 0 "$mckpt" verify fsdp --against $hub
expect 0 "$mckpt" verify fsdp --assets $hub
expect 0 "$mckpt" verify $hub
expect 0 "$mckpt" diff plain $hub
expect 0 "$mckpt" diff $hub plain
expect 0 "$mckpt" layout $hub --tp 2
expect 0 "$mckpt" ls $hub --as fsdp --tp 2
expect 0 "$mckpt" mappings check $hub
expect 0 "$mckpt" plot $hub -o picture.svg
expect 0 "$mckpt" inspect $hub
has out "snapshots/abc (refs/main)"

# refs/main chooses one of two snapshots; without it nothing does, and a folder of that kind is never guessed.
rm $hub/refs/main
expect 3 "$mckpt" convert hf-to-fsdp $hub result
has err "no refs/main"
has err "2 snapshots"
rmdir $hub/snapshots/old
expect 0 "$mckpt" convert hf-to-fsdp $hub result --no-sync -q
printf gone >$hub/refs/main
expect 3 "$mckpt" verify fsdp --assets $hub
has err "no snapshot that refs/main names"

# A training run may call its saves snapshots, too: the folder is one of several checkpoints, and no model of a hub.
mkdir -p run/snapshots && cp -r plain run/snapshots/step_1 && cp -r plain run/snapshots/step_2
expect 3 "$mckpt" ls run
lacks err "refs/main"
has err "step_1"
expect 0 "$mckpt" verify run/snapshots
