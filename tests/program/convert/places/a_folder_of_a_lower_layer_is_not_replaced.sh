#!/usr/bin/env bash
# overlayfs cannot rename a folder of a lower layer, as one that came with an image: --overwrite is refused before the work, and says
# how the folder becomes one that can be replaced. Files, new folders and folders of the upper layer are written as everywhere.
. "$MCKPT_SOURCE"/tests/support/common.inc
if [ "${1:-}" != inside ]; then
  unshare -m true 2>/dev/null || skip "no mounts of its own can be made here, or not as root"
  status=0
  unshare -m bash "$MCKPT_SOURCE/tests/program/convert/places/a_folder_of_a_lower_layer_is_not_replaced.sh" inside || status=$?
  exit $status
fi

mkdir layers && mount -t tmpfs none layers 2>/dev/null && mkdir layers/{low,up,work,top} || skip "no tmpfs can be mounted here"
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 0 "$mckpt" convert hf-to-fsdp "$model" layers/low/ck --tp 2 --no-sync -q
expect 0 "$mckpt" convert safetensors-to-pt "$model" layers/low/one.pt --no-sync -q
cd layers
mount -t overlay overlay -o lowerdir=low,upperdir=up,workdir=work top 2>/dev/null || skip "no overlayfs can be mounted here"
cd top
sums() { find . -type f -exec sha256sum {} + | sort -k2; }

before=$(sums)
for how in "" --no-sync; do
  expect 4 "$mckpt" convert hf-to-fsdp "$model" ck --dp 2 --overwrite $how
  has err "error[MC3003]: the folder to be replaced is one of a lower layer of overlayfs"
  has err "cp -a ck/release ck/release.copy && rm -r ck/release && mv ck/release.copy ck/release"
  lacks err "resume"
  [ "$(sums)" = "$before" ] || fail "files changed"
  [ ! -e ck/.release.mckpt-tmp ] || fail "a hidden folder stays"
done

# The advice of the help makes it a folder that is replaced; so are files, and folders that are new.
cp -a ck/release ck/release.copy && rm -r ck/release && mv ck/release.copy ck/release
expect 0 "$mckpt" convert hf-to-fsdp "$model" ck --dp 2 --overwrite --no-sync
expect 0 "$mckpt" verify ck --against "$model" -q
[ -e ck/release/__1_0.distcp ] && [ -z "$(find ck -name '.*mckpt*')" ] || fail "not replaced: $(ls -a ck)"
expect 0 "$mckpt" convert hf-to-fsdp "$model" ck --dp 3 --overwrite
expect 0 "$mckpt" convert safetensors-to-pt "$model" one.pt --overwrite --no-sync
expect 0 "$mckpt" convert hf-to-fsdp "$model" new --no-sync

# With redirect_dir the folders of a lower layer can be renamed.
cd .. && umount top && rm -r up work && mkdir up work
done_here() { cd .. && umount -l layers && exit 0; }
mount -t overlay overlay -o lowerdir=low,upperdir=up,workdir=work,redirect_dir=on top 2>/dev/null || done_here
cd top
expect 0 "$mckpt" convert hf-to-fsdp "$model" ck --dp 2 --overwrite --no-sync
[ -e ck/release/__1_0.distcp ] && [ -z "$(find ck -name '.*mckpt*')" ] || fail "not replaced under redirect_dir: $(ls -a ck)"
cd .. && done_here
