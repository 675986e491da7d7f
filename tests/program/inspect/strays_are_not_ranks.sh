#!/usr/bin/env bash
# Data files that .metadata does not name are not of the save: they are told, and count neither as ranks nor for who packed it. An
# empty file is of a rank that held nothing, unless files of another save lie beside it.
. "$MCKPT_SOURCE"/tests/support/common.inc
expect 0 "$mckpt" convert hf-to-fsdp "$MCKPT_SOURCE/test_data/models/tiny_qwen3_moe" ckpt --dp 3 --no-sync
packing() { sed 's/.*"packing": \({[^}]*}\).*/\1/' out; }
expect 0 "$mckpt" inspect ckpt --json
has out '"ranks": 3, "file_bytes"'
wanted=$(packing)
expect 0 "$mckpt" layout ckpt --json
cp out layout.json

for rank in 4 7; do cp ckpt/release/__1_0.distcp ckpt/release/__${rank}_0.distcp; done
: >ckpt/release/__8_0.distcp
expect 0 "$mckpt" inspect ckpt --json
has out '"ranks": 3, "file_bytes"'
[ "$(packing)" = "$wanted" ] || fail "packed by $(packing), not $wanted"
for rank in 4 7; do has out '"MC1315", "tensor": null, "rank": null, "file": "__'$rank'_0.distcp"'; done
lacks out '__8_0'
expect 0 "$mckpt" inspect ckpt
has out '| 3 ranks |'
has out '; 3 ranks: tp=1 dp*cp=3'
has err 'warning[MC1315]: __4_0.distcp: .metadata does not name the file'
expect 0 "$mckpt" layout ckpt --json
cmp out layout.json || fail "the layout is another one"
lacks err 'disagree'

# A rank of the save that held nothing.
rm ckpt/release/__4_0.distcp ckpt/release/__7_0.distcp
mv ckpt/release/__8_0.distcp ckpt/release/__3_0.distcp
expect 0 "$mckpt" inspect ckpt
has out '| 4 ranks |'
lacks err MC1315

# An index that lost a box: what is left of it is not whole, though one rank has it.
expect 1 "$mckpt" inspect "$MCKPT_SOURCE/test_data/dcp/variations/hole" --map
has out 'a hole: no chunk covers offsets [5, 0], sizes [3, 4]'
lacks out 'nothing to map'
has err 'warning[MC1315]: __1_0.distcp'
