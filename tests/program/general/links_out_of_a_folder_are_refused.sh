#!/usr/bin/env bash
# A link inside of a folder that leads out of it is followed nowhere, be it to a file or a folder; --follow-links does it, and
# the error says so. The path that the user gives may be a link.
. "$MCKPT_SOURCE"/tests/support/common.inc
data=$MCKPT_SOURCE/test_data

mkdir elsewhere one iteration tracked tracker release snapshots shards dcp ranks
cp "$data"/pt/zip.pt elsewhere/
cp -r "$data"/models/tiny_qwen3_moe elsewhere/model
cp -r "$data"/dcp/torch_dist_mini elsewhere/run
checkpoint=$(cd elsewhere/run && ls -d iter_*)
ln -s ../elsewhere/zip.pt one/only.pt
ln -s "../elsewhere/run/$checkpoint" iteration/iter_0000010
ln -s "../elsewhere/run/$checkpoint" tracked/iter_0000010
echo 10 >tracked/latest_checkpointed_iteration.txt
echo 10 >elsewhere/number
ln -s ../elsewhere/number tracker/latest_checkpointed_iteration.txt
cp -r "elsewhere/run/$checkpoint" tracker/iter_0000010
cp -r "$data"/pt/megatron elsewhere/
for rank in elsewhere/megatron/*/mp_rank_*; do ln -s "../$rank" ranks/; done
ln -s "../elsewhere/run/$checkpoint" release/release
mkdir snapshots/snapshots
ln -s ../../elsewhere/model snapshots/snapshots/abc
for file in elsewhere/model/*; do ln -s "../$file" shards/; done
for file in "elsewhere/run/$checkpoint"/.metadata "elsewhere/run/$checkpoint"/*; do ln -s "../$file" dcp/; done

for folder in one iteration tracked tracker ranks release snapshots shards dcp; do
  for command in "inspect $folder" "verify $folder" "ls $folder --json"; do
    expect "$([[ $command == verify* ]] && echo 1 || echo 3)" "$mckpt" $command
    cat out err >both
    has both MC1004
    has both "is a link that leads outside of its folder"
    has both "--follow-links"
    expect 0 "$mckpt" $command --follow-links
    expect 0 "$mckpt" --follow-links $command
  done
  ln -s "$folder" "link_to_$folder"
  expect 3 "$mckpt" inspect "link_to_$folder"
done

# A path of the user may be a link, and so may any part of the way to it.
ln -s elsewhere other
for path in one/only.pt iteration/iter_0000010 release/release snapshots/snapshots/abc other/model other/zip.pt; do
  expect 0 "$mckpt" inspect "$path"
done

# Assets within a checkpoint.
expect 0 "$mckpt" convert hf-to-fsdp elsewhere/model ckpt
mv ckpt/release/hf_assets elsewhere/
ln -s ../../elsewhere/hf_assets ckpt/release/hf_assets
for command in "export ckpt out_hf" "verify ckpt" "convert reshard ckpt resharded --dp 2"; do
  expect 3 "$mckpt" $command
  cat out err >both
  has both "--follow-links"
done
[ ! -e out_hf ] && [ ! -e resharded/release ] || fail "something was published"
expect 0 "$mckpt" verify ckpt --follow-links
expect 0 "$mckpt" convert reshard ckpt resharded --dp 2 --follow-links
expect 0 "$mckpt" export ckpt out_hf --follow-links
[ ! -L out_hf/config.json ] && cmp out_hf/config.json elsewhere/model/config.json || fail "config.json is not a copy"

# Links that stay inside, and names that lead out without any link.
mkdir inside
cp -r "elsewhere/run/$checkpoint" inside/iter_0000009
ln -s iter_0000009 inside/iter_0000010
echo 10 >inside/latest_checkpointed_iteration.txt
expect 0 "$mckpt" inspect inside
mkdir dots
echo '{"weight_map":{"w":"../elsewhere/model/model-00001-of-00002.safetensors"}}' >dots/model.safetensors.index.json
expect 3 "$mckpt" inspect dots --follow-links
has err "leads outside of its folder (..)"
