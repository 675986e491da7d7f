#!/usr/bin/env bash
# inspect --args shows the values of what is not a tensor, and runs none of it
. "$MCKPT_SOURCE"/tests/support/common.inc
data=$MCKPT_SOURCE/test_data/dcp

expect 0 "$mckpt" inspect "$data/uneven_4" --args
has out "iteration  10"
has out "params_dtype"
has out "torch.bfloat16"
has out "opt_param_scheduler.lr_decay_style  'cosine'"
has out "optimizer.param_to_group_meta.*  x"
lacks out "decoder.layers.0.mlp.linear_fc1.weight.lr"

expect 0 "$mckpt" inspect "$data/uneven_4" --args --tree
has out "decoder.layers.0.mlp.linear_fc1.weight.lr  0.0003"

expect 0 "$mckpt" --json inspect "$data/torch_dist_mini" --args
has out '"name": "common_state/shard_0_1"'
has out "'iteration': 10"
