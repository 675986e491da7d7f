#!/usr/bin/env bash
# No folder can be renamed to a mount point: --overwrite of one is refused before anything is written.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 0 "$mckpt" convert hf-to-fsdp "$model" run --no-sync
mkdir volume bound
cat >mounted <<'SH'
set -eu
mount -t tmpfs tmpfs volume && mount --bind bound bound || exit 77
for folder in volume bound; do
  for how in "" --dry-run; do
    status=0
    "$1" export run $folder --overwrite --no-sync $how 2>>err || status=$?
    [ $status = 4 ] || { echo "$folder: status $status" >>err; exit 1; }
  done
  [ -z "$(ls -A $folder)" ] && [ ! -e .$folder.mckpt-tmp ] || { echo "$folder: something was written" >>err; exit 1; }
  "$1" export run $folder/result --no-sync -q 2>>err
done
SH
status=0
: >err
unshare -rm bash mounted "$mckpt" >out 2>&1 || status=$?
[ $status != 77 ] && ! grep -q unshare: out || skip "nothing can be mounted here"
[ $status = 0 ] || fail "exit status $status"
has err "error[MC3003]"
has err "volume/result"
