#!/usr/bin/env bash
# Every conversion that writes a file for each rank refuses more ranks than its tensors have rows, beyond 1,024, with the same words, and writes nothing.
. "$MCKPT_SOURCE"/tests/support/common.inc

model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe
expect 0 "$mckpt" convert hf-to-fsdp "$model" fsdp --dp 2 -q
expect 0 "$mckpt" convert to-mcore "$model" core --tp 1 -q
expect 0 "$mckpt" convert to-dcp "$model" own --dp 2 -q
refused() {
  expect 2 "$mckpt" convert "$@"
  has err "error[MC0201]: the result has more ranks than a folder is cut for: each of them has a file"
  has err "expected 1 to 1,024"
  has err "found    $ranks"
  [ ! -e result ] || fail "$* wrote"
}
for dp in 1025 65536; do
  ranks=$(printf "%'d" "$dp" | sed -E ':a;s/^([0-9]+)([0-9]{3})($|,)/\1,\2\3/;ta')
  refused to-dcp "$model" result --dp "$dp"
  refused to-dcp own result --dp "$dp"
  refused reshard own result --dp "$dp"
  refused reshard fsdp result --dp "$dp"
  refused reshard core result --dp "$dp"
  refused hf-to-fsdp "$model" result --dp "$dp"
  refused to-fsdp core result --dp "$dp"
  refused to-mcore "$model" result --dp "$dp"
  refused to-mcore fsdp result --dp "$dp"
done
ranks=1,026
refused reshard fsdp result --tp 2 --dp 513
expect 0 "$mckpt" convert reshard own result --dp 1024 --dry-run
