#!/usr/bin/env bash
# --overwrite removes nothing through a mount in the folder that is replaced, be it the source itself: it is refused
# before anything is written. So is a run that finds a mount in what an interrupted one left.
. "$MCKPT_SOURCE"/tests/support/common.inc
if [ "${1:-}" != inside ]; then
  unshare -rm true 2>/dev/null || skip "no mounts of its own can be made here"
  status=0
  unshare -rm bash "$MCKPT_SOURCE/tests/program/convert/places/mounts_in_a_result_are_never_entered.sh" inside || status=$?
  exit $status
fi

cp -r "$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe" model
expect 0 "$mckpt" convert hf-to-fsdp model ck --tp 2 --no-sync -q
mkdir data && cp model/config.json data
sums() { find model data ck/release -type f -exec sha256sum {} + | sort -k2; }
convert=("$mckpt" convert hf-to-fsdp model ck --tp 2 --overwrite --no-sync -q)

refused() {  # WHERE
  local before
  before=$(sums)
  for more in "" --resume -n; do
    [ "$more" != --resume ] || continue
    # shellcheck disable=SC2086
    expect 4 "${convert[@]}" $more
    has err "error[MC3003]"
    has err "$1: something is mounted there"
    [ "$(sums)" = "$before" ] || fail "files changed"
  done
  [ ! -e ck/.release.mckpt-tmp ] || [ "$1" = inner ] || fail "something was written"
}
mount --bind model ck/release/hf_assets 2>/dev/null || skip "no folder can be mounted here"
refused hf_assets
umount ck/release/hf_assets
# The manifest lists a file of the name.
mount --bind data ck/release/hf_assets
refused hf_assets
umount ck/release/hf_assets
# On a single file, and on a folder of another file system.
mount --bind data/config.json ck/release/hf_assets/config.json
refused hf_assets/config.json
umount ck/release/hf_assets/config.json
mkdir ck/release/hf_assets/inner
mount -t tmpfs none ck/release/hf_assets/inner
refused hf_assets/inner
umount ck/release/hf_assets/inner
rmdir ck/release/hf_assets/inner

# The remains of an interrupted run.
mkdir -p ck/.release.mckpt-tmp/inner
mount --bind data ck/.release.mckpt-tmp/inner
refused inner
[ -e data/config.json ] || fail "the mounted file was removed"
umount ck/.release.mckpt-tmp/inner
expect 0 "${convert[@]}"
expect 0 "$mckpt" verify ck -q
[ ! -e ck/.release.mckpt-tmp ] || fail "something is left"
