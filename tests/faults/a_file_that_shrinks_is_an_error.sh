#!/usr/bin/env bash
# A file that becomes shorter while the program is reading it ends in an error that says so, never in a signal.
. "$MCKPT_SOURCE"/tests/support/common.inc
[ -r /proc/self/io ] || skip "there is no /proc/PID/io"

# 16 GiB of zeros that take no room: longer than the program reads until it is looked at.
items=$((16 << 30))
header="{\"w\":{\"dtype\":\"U8\",\"shape\":[$items],\"data_offsets\":[0,$items]}}"
for command in "ls --digest" stats verify; do
  { printf "\\x$(printf %02x ${#header})\\0\\0\\0\\0\\0\\0\\0$header"; } >big.safetensors
  truncate -s $((8 + ${#header} + items)) big.safetensors
  "$mckpt" $command big.safetensors -j2 >out 2>err </dev/null &
  reader=$!
  until read=$(sed -n 's/^rchar: //p' /proc/$reader/io 2>/dev/null) && [ "${read:-0}" -gt 50000000 ]; do
    kill -0 $reader 2>/dev/null || fail "$command ended before it had read 50 MB"
    sleep 0.01
  done
  truncate -s 1000000 big.safetensors
  status=0
  wait $reader || status=$?
  [ $status = 1 ] || [ $status = 3 ] || fail "exit status $status: $command"
  cat out err >both
  [ "$(grep -c '\[MC1002\].*became shorter' both)" = 1 ] || fail "not one error tells that the file became shorter: $command"
  grep -q 'big.safetensors' both || fail "the file is not named: $command"
done
