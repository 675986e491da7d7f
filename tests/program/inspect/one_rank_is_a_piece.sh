#!/usr/bin/env bash
# One file of several ranks has a piece of its tensors: inspect and ls say how much, of what, and where; the other ranks are
# unknown, and nothing calls it whole. Values of the piece are read.
. "$MCKPT_SOURCE/tests/support/common.inc"
ranks=$MCKPT_SOURCE/test_data/rank_files/verl2_w3
file=$ranks/model_world_size_3_rank_1.pt

expect 0 "$mckpt" inspect "$file" --tree
has out "rank 1 of 3; mesh [3] at [1]"
has out "8,847 of 22,516 items are here; of 30 of 31 tensors a part"
grep -Eqx 'lm_head.weight +\[21, 32\] +float32 +2.62 KiB +of \[61, 32\] at \[21, 0\]  Shard\(0\)' out || fail "lm_head in the tree"
expect 0 "$mckpt" ls "$file"
grep -Eqx 'lm_head.weight +float32 +\[21, 32\] +of \[61, 32\] at \[21, 0\]  Shard\(0\) +2,688 +1 chunk in .*' out || fail "lm_head in ls"
expect 0 "$mckpt" inspect "$file" --map
lacks out "every tensor whole"
grep -Eqx 'tensor +here +whole +at +placements +r0 r1 r2' out || fail "the columns of the ranks"
grep -Eqx 'lm_head.weight +\[21, 32\] +\[61, 32\] +\[21, 0\] +Shard\(0\) +\?\? ██ \?\?' out || fail "rows of lm_head"
grep -Eqx 'model.layers.1.mlp.gate.e_score_correction_bias +\[4\] +\[4\] +\[0\] +whole +\?\? ██ \?\?' out || fail "a whole tensor"
has out "?? unknown: the files of the other ranks were not opened"

# inspect, ls and their JSON count the same bytes: the piece alone.
expect 0 "$mckpt" inspect "$file" --json
cp out inspect.json
expect 0 "$mckpt" ls "$file" --json
python - inspect.json out <<'EOF'
import json, sys
inspect, ls = (json.load(open(f)) for f in sys.argv[1:])
assert inspect["bytes"] == sum(t["bytes"] for t in ls["tensors"]) < 55_000, inspect["bytes"]
shard = inspect["shard"]
assert (shard["rank"], shard["ranks"], shard["mesh"]) == (1, 3, [{"name": "", "size": 3, "at": 1}])
local = {t["name"]: t["local_shape"] for t in ls["tensors"]}
assert local == {t["name"]: t["local_shape"] for t in shard["tensors"]}
assert inspect["packing"] is None
EOF

# The values equal these rows of the whole.
expect 0 "$mckpt" cat "$file" 'lm_head.weight[0:2, :4]'
cp out piece
expect 0 "$mckpt" cat "$ranks" 'lm_head.weight[21:23, :4]'
cmp piece out || fail "the values of the piece"
expect 0 "$mckpt" stats "$file" lm_head.weight
grep -Eq '^lm_head.weight +float32 +\[21, 32\]' out || fail "the statistics of the piece"

# The file's own name says how many ranks there are, whatever the mesh of one tensor.
expect 0 "$mckpt" inspect "$MCKPT_SOURCE/test_data/rank_files/placements/model_world_size_8_rank_1.pt"
has out "rank 1 of 8;"

# Errors about the file of one rank name it, and not its folder.
tar xf "$MCKPT_SOURCE/test_data/megatron_runs/dense.tar.xz"
one=dense/torch_dist/iter_0000003/__2_0.distcp
expect 1 "$mckpt" cat "$one" nonesuch
has err "  --> $one"
has err "mckpt ls $one "
has err "the file of one rank was opened"
expect 3 "$mckpt" layout "$one"
has err "MC1225"
has err "  --> $one"
expect 3 "$mckpt" layout dense/iter_0000003/mp_rank_01_000/model_optim_rng.pt
has err "help: this is the file of one rank: name the folder with the files of all ranks"
# Rows 2 and 4, which are not one box; a rank's file of two.
expect 0 "$mckpt" ls "$one" decoder.layers.mlp.linear_fc1.layer_norm_weight
grep -q '\[2, 8\] *of \[5, 8\] at ?' out || fail "rows with a gap have an offset"
has err "the file has a part of what rank 2 of 4 wrote"
# A folder that the grid of the args does not have.
mkdir mp_rank_09_000
cp dense/iter_0000003/mp_rank_01_000/model_optim_rng.pt mp_rank_09_000/
expect 0 "$mckpt" inspect mp_rank_09_000/model_optim_rng.pt
has out "mesh tp=2 pp=2 at tp ?, pp 0"
has out "warning: the folder is named by tp 9, which the args with tp=2 do not have"

# All ranks together have everything, and so has a file that is not one of several.
expect 0 "$mckpt" inspect "$ranks"
lacks out "items are here"
expect 0 "$mckpt" convert to-safetensors "$ranks" whole.safetensors --no-sync -q
expect 0 "$mckpt" inspect whole.safetensors --map
has out "every tensor whole"
