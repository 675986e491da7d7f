#!/usr/bin/env bash
. "$MCKPT_SOURCE"/tests/support/common.inc
. "$MCKPT_SOURCE"/tests/support/sparse_model.inc

# A file system of two megabytes, in a name space of its own.
mounted='mount -t tmpfs -o size=2M none disk && exec "$@"'
mkdir disk
unshare -rm sh -c "$mounted" - true 2>err || skip "no file system can be mounted here: $(tail -n 1 err)"

inside() { unshare -rm sh -c "$mounted" - bash -c "$1"; }
export mckpt
sparse_model 3
run='echo old >disk/model.pt; status=0
  $mckpt convert safetensors-to-pt model.safetensors disk/model.pt --overwrite || status=$?
  ls -A disk; cat disk/model.pt; exit $status'
expect 4 inside "$run"
has err "error[MC3006]"
has err "iB free"
lacks err "plan "
[ "$(cat out)" = "model.pt
old" ] || fail "the target was touched, or something left behind"

# Room that is there when it is looked for, and not when it is taken.
run='head -c 500000 /dev/zero >disk/other
  $mckpt convert safetensors-to-pt model.safetensors disk/model.pt --exclude "layers.[01].w" || exit
  $mckpt verify disk/model.pt >&2; ls -A disk'
expect 0 inside "$run"

# A small result for which there is room by its bytes, and not by its blocks: nothing is left where nothing can resume.
run='head -c 2064384 /dev/zero >disk/other
  $mckpt example disk/tiny || status=$?
  ls -A disk; exit $status'
expect 5 inside "$run"
has err "No space left"
[ "$(cat out)" = other ] || fail "left behind: $(cat out)"
