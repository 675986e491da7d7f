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

# A field that a conversion changed in args of Megatron is shown once, with the value that Python reads.
tar xf "$MCKPT_SOURCE/test_data/megatron_runs/dense.tar.xz"
expect 0 "$mckpt" inspect dense/torch_dist --args
has out "num_layers: 5"
before=$(grep -o 'args: Namespace, [0-9]* fields' out)
expect 0 "$mckpt" convert gpt-to-hybrid dense/torch_dist hybrid --pattern '*-*-*-*-*-' --no-sync
expect 0 "$mckpt" inspect hybrid --args
has out " num_layers: 10"
lacks out " num_layers: 5"
has out "hybrid_layer_pattern: '*-*-*-*-*-'"
after=$(grep -o 'args: Namespace, [0-9]* fields' out)
fields() { tr -dc 0-9 <<<"$1"; }
[ "$(fields "$after")" = $(($(fields "$before") + 1)) ] || fail "$before, and with a pattern $after"
expect 0 "$mckpt" inspect hybrid --args --json
has out "'num_layers': 10"
lacks out "'num_layers': 5"
