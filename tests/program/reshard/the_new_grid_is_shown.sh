#!/usr/bin/env bash
# The account of a resharding shows the grid: sizes that are not given are 1, whatever the source has.
. "$MCKPT_SOURCE"/tests/support/common.inc

data=$MCKPT_SOURCE/test_data
expect 0 "$mckpt" convert hf-to-fsdp "$data/models/tiny_qwen3_moe" ckpt --tp 2 --ep 2
expect 0 "$mckpt" convert reshard ckpt resharded --dp 4 --dry-run
has err "writes  fsdp_dtensor: 4 ranks (tp=1 cp=1 ep=1 etp=1 pp=1 dp=4), "
expect 0 "$mckpt" convert reshard "$data/dcp/plain" resharded --any-model --dp 3 --dry-run
has err "writes  DCP, with its own names: 3 ranks (tp=1 cp=1 ep=1 etp=1 pp=1 dp=3), "
