#!/usr/bin/env bash
# scripts/release-image builds and runs with the container engine that works, ends as the image ends, and says loudly when it
# could try nothing. The engines here are scripts that note what they are asked for.
. "$MCKPT_SOURCE/tests/support/common.inc"
[ -n "${MCKPT_PYTHON:-}" ] || skip "there is no python3"
mkdir engines context data
cp "$MCKPT_SOURCE/scripts/Containerfile" context/
engine() {  # name, exit status of info, exit status of run
  printf '#!/bin/sh\necho "%s $*" >>"%s/asked"\ncase $1 in info) exit %s ;; build) echo built ;; run) for w; do :; done; echo "ran $w"; [ "$w" != bad ] || exit 5 ;; esac\n' \
    "$1" "$t" "$2" >"engines/$1"
  chmod +x "engines/$1"
}
# debootstrap is in /usr/sbin, which is not in this list.
image() { PATH=$t/engines:/usr/bin:/bin "$MCKPT_PYTHON" "$MCKPT_SOURCE/scripts/release-image" context data "$@"; }

engine podman 1
engine docker 1
expect 77 image --version
has err "SKIPPED, the image was NOT tried"
! grep -q build asked || fail "an engine that does not work was asked to build"

engine docker 0
rm asked
expect 0 image --version -- verify model
[ "$(cat out)" = $'ran --version\nran model' ] || fail "each list of arguments is one run, and the answers are on stdout"
has err built
has err "with docker"
grep -qx "docker build -q -t mckpt-release -f $t/context/Containerfile $t/context" asked || fail "$(cat asked)"
grep -qx "docker run --rm -v $t/data:/data mckpt-release verify model" asked || fail "$(cat asked)"
expect 5 image bad -- verify model
lacks out "ran model"

engine podman 0
expect 0 image --version
has err "with podman"
