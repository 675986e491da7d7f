#!/usr/bin/env bash
# With less and less memory the program works, or says that memory is out; the loader may fail before it, but nothing
# that mckpt does ends with a signal.
. "$MCKPT_SOURCE"/tests/support/common.inc

told=0 worked=0
limited() {  # KiB: its exit status to $status
  status=0
  (ulimit -c 0; ulimit -v "$1" && exec "$mckpt" --version) >"$t/out" 2>"$t/err" || status=$?
}

limited 2000000
[ "$status" = 0 ] || skip "this build does not run in 2 GB of address space"
least=0
for ((kib = 64000; kib >= 8000; kib -= 500)); do
  limited "$kib"
  [ "$status" != 127 ] && [ "$status" != 139 ] || break
done
# Around the place where the loader gives up, page by page.
for ((at = kib + 1000; at >= kib - 500; at -= 4)); do
  limited "$at"
  case $status in
    0) worked=$((worked + 1)) ;;
    3) told=$((told + 1)); has err "error[MC9902]" ;;
    127) least=$((least + 1)) ;;
    139) [ ! -s err ] || fail "$at KiB: a crash" ;;  # the kernel has no room for the program itself
    *) fail "$at KiB: exit status $status" ;;
  esac
done
[ "$worked" -gt 0 ] && [ "$least" -gt 0 ] || fail "worked $worked times, not loaded $least times"
echo "worked $worked times, told $told times, not loaded $least times"
[ "$told" -gt 0 ] || fail "no run told that there was too little memory"
