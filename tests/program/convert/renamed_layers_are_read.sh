#!/usr/bin/env bash
# A checkpoint whose layers got the names of another form is still one of its model: it is compared, exported and
# resharded with the assets that came along.
. "$MCKPT_SOURCE"/tests/support/common.inc
model=$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe

expect 0 "$mckpt" convert hf-to-fsdp "$model" gpt --dp 2 --no-sync -q
expect 0 "$mckpt" convert gpt-to-hybrid gpt hybrid --pattern '*E*E' --no-sync -q
for other in hybrid gpt "$model"; do
  expect 0 "$mckpt" verify hybrid --against "$other"
  has out ": equal"
done
expect 0 "$mckpt" verify gpt --against hybrid
expect 0 "$mckpt" export hybrid exported --no-sync -q
expect 0 "$mckpt" verify exported --against "$model"

# Layers in groups belong to the GPT model too.
expect 0 "$mckpt" convert gpt-to-hybrid gpt grouped --pattern '[*E][*E]' --no-sync -q
for other in gpt hybrid "$model"; do
  expect 0 "$mckpt" verify grouped --against "$other"
done
expect 0 "$mckpt" verify gpt --against grouped
expect 0 "$mckpt" verify hybrid --against grouped

# Resharded it keeps its names, and what export needs.
expect 0 "$mckpt" convert reshard hybrid three --dp 3 --no-sync
has err "keep them"
expect 0 "$mckpt" ls three
has out decoder.layers.3.mlp
expect 0 "$mckpt" verify three --against hybrid
expect 0 "$mckpt" export three again --no-sync -q
expect 0 "$mckpt" verify again --against "$model"
expect 4 "$mckpt" convert reshard hybrid cells --tp 2 --no-sync -q
has err hybrid-to-gpt
has err MC2013

# Differences are found under the new names.
python - gpt/release <<'PYTHON'
import sys
with open(sys.argv[1] + "/__0_0.distcp", "r+b") as f:
    at = f.read().find(b"/data/0") + 200
    f.seek(at)
    byte = f.read(1)[0]
    f.seek(at)
    f.write(bytes([byte ^ 1]))
PYTHON
expect 1 "$mckpt" verify gpt --against hybrid
