#!/usr/bin/env bash
# With less and less memory a conversion works, or ends with an error that says what was needed and what was free; it
# never crashes, and threads that cannot be had are done without.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe

limited() {  # KiB: converts under that limit; its exit status to $status
  rm -rf made
  status=0
  (ulimit -v "$1" && exec "$mckpt" convert hf-to-fsdp "$model" made -j 4 -q --no-sync --progress none) >"$t/out" 2>"$t/err" || status=$?
}

limited 2000000
[ "$status" = 0 ] || skip "this build does not run in 2 GB of address space"
told=0 worked=0
for ((kib = 100000; kib >= 8000; kib -= 1000)); do
  limited "$kib"
  case $status in
    0) worked=$((worked + 1)) ;;
    127) break ;;  # not even loaded
    3) grep -q '^error\[MC' err || fail "$kib KiB: no error is told"
       ! grep -q 'MC9901' err || fail "$kib KiB: taken for a fault of the program"
       ! grep -q 'MC9902' err || told=$((told + 1)) ;;
    *) fail "$kib KiB: exit status $status" ;;
  esac
  [ ! -e made/release ] || [ "$status" = 0 ] || fail "$kib KiB: published"
done
[ "$worked" -gt 10 ] || fail "it worked $worked times"
[ "$told" -gt 0 ] || fail "no run told that there was too little memory"
