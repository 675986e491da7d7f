#!/usr/bin/env bash
# The last line of verify claims no more than was looked at.
. "$MCKPT_SOURCE"/tests/support/common.inc
cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe model
last() { [ "$(tail -n 1 out)" = "$1" ] || fail "the last line is not: $1"; }

expect 0 "$mckpt" verify model
has out "-     crc32    no checksums are stored"
last "model: sound; no checksums to compare"
expect 0 "$mckpt" verify model -q
[ "$(wc -l <out)" = 1 ] || fail "-q lists checks that pass"
expect 0 "$mckpt" verify model --json
has out '{"name": "crc32", "status": "none", "count": 0, "unseen": 0, "note": "no checksums are stored"}'

# A format with sums, and a folder whose manifest has them.
expect 0 "$mckpt" verify "$MCKPT_SOURCE"/test_data/pt/views.pt
last "$MCKPT_SOURCE/test_data/pt/views.pt: sound"
expect 0 "$mckpt" convert hf-to-fsdp model sharded --no-sync -q
expect 0 "$mckpt" export sharded exported --no-sync -q
expect 0 "$mckpt" verify exported
last "exported: sound"

cp -r model nulls
python -c '
import json
config = json.load(open("nulls/config.json"))
config["hidden_size"] = None
json.dump(config, open("nulls/config.json", "w"))'
expect 0 "$mckpt" verify nulls
has out "warning[MC2001]: nulls/config.json: 'hidden_size' is of the wrong type"
last "nulls: sound, with warnings, but config.json was not compared; no checksums to compare"

# Below a folder a path is named once.
mkdir -p parent
cp -r model parent/x
sed -i 's/"num_attention_heads": [0-9]*/"num_attention_heads": 8/' parent/x/config.json
expect 1 "$mckpt" verify parent
has out "problem[MC2005]: parent/x: the tensors"
lacks out "x/parent"

# A folder of iterations without the file that names one of them.
expect 0 "$mckpt" convert hf-to-fsdp model run --iteration 4 --no-sync -q
rm run/latest_checkpointed_iteration.txt
expect 0 "$mckpt" verify run
has out "there is no latest_checkpointed_iteration.txt"

# Values in another order than row by row are compared.
expect 0 "$mckpt" convert pt-to-safetensors "$MCKPT_SOURCE"/test_data/pt/views.pt v.safetensors --no-sync -q
expect 0 "$mckpt" verify v.safetensors --against "$MCKPT_SOURCE"/test_data/pt/views.pt
last "v.safetensors: equal"
python -c '
data = bytearray(open("v.safetensors", "rb").read())
data[-1] ^= 1
open("w.safetensors", "wb").write(data)'
expect 1 "$mckpt" verify w.safetensors --against "$MCKPT_SOURCE"/test_data/pt/views.pt
last "w.safetensors: not equal"
