#!/usr/bin/env bash
# mckpt_map.json in a folder decides where every weight goes. Where mckpt has a table of its own for the model, whoever made the folder could
# exchange weights with it unseen: the plan, inspect, verify and comparisons say that the map is there.
. "$MCKPT_SOURCE"/tests/support/common.inc

cp -r "$MCKPT_SOURCE"/test_data/models/tiny_qwen3_moe hf
cp -r hf mapped
"$mckpt" mappings show qwen3_moe --json >rows.json
python - <<'E'
import json
rows = json.load(open("rows.json"))
for row in rows["rows"]:
    if any("gate_proj" in name for name in row["hugging_face"]):
        row["hugging_face"].reverse()
json.dump(rows, open("mapped/mckpt_map.json", "w"))
E
told="replaces rows of mckpt's own table of qwen3_moe"

expect 0 "$mckpt" convert hf-to-fsdp mapped run --no-sync
has err "mckpt_map.json of mapped $told"
expect 0 "$mckpt" convert hf-to-fsdp mapped run2 --dry-run
has err "$told"
expect 0 "$mckpt" inspect mapped
has out "$told"
expect 0 "$mckpt" verify mapped
has out "$told"
expect 0 "$mckpt" verify mapped --json
has out "$told"
expect 0 "$mckpt" verify run --against mapped
grep -qF "$told" out err || fail "verify --against says nothing of the map"
expect 0 "$mckpt" diff run mapped
grep -qF "$told" out err || fail "diff says nothing of the map"

# A map that the user names needs no warning, and a folder without one has none.
expect 0 "$mckpt" convert hf-to-fsdp hf named --map-file mapped/mckpt_map.json --no-sync
lacks err "$told"
expect 0 "$mckpt" convert hf-to-fsdp hf plain --no-sync
lacks err "mckpt_map.json"
expect 0 "$mckpt" verify hf
lacks out "mckpt_map.json"
