#!/usr/bin/env bash
# One file of several ranks has a piece of its tensors: inspect says how much, and --map which rows; nothing calls it whole.
. "$MCKPT_SOURCE/tests/support/common.inc"
ranks=$MCKPT_SOURCE/test_data/rank_files/verl2_w3
file=$ranks/model_world_size_3_rank_1.pt

expect 0 "$mckpt" inspect "$file"
has out "the piece of one rank: 8,847 of 22,516 items; of 30 tensors a part"
expect 0 "$mckpt" inspect "$file" --map
lacks out "every tensor whole"
grep -Eqx 'lm_head.weight +\[61, 32\] +rows 21 to 41 of 61' out || fail "rows of lm_head"
grep -Eqx 'model.layers.1.mlp.gate.e_score_correction_bias +\[4\] +whole' out || fail "a whole tensor"
has out "this is the piece of one rank; open the folder with the files of all ranks to see the others"
# All ranks together have everything, and so has a file that is not one of several.
expect 0 "$mckpt" inspect "$ranks"
lacks out "piece of one rank"
expect 0 "$mckpt" convert to-safetensors "$ranks" whole.safetensors --no-sync -q
expect 0 "$mckpt" inspect whole.safetensors --map
has out "every tensor whole"
