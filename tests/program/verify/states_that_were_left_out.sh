#!/usr/bin/env bash
# verify --against --weights-only: a conversion that left the states of the optimizer out is equal without them, and they
# are named as not compared. Without the option, and where there are states, the answer is negative.
. "$MCKPT_SOURCE"/tests/support/common.inc
source=$MCKPT_SOURCE/test_data/dcp/fsdp_dtensor_optim
assets=$MCKPT_SOURCE/test_data/golden/models/tiny_llama1

for how in "--any-model" "--assets $assets" "--assets $assets --engine v2"; do
  rm -rf weights
  # shellcheck disable=SC2086
  expect 0 "$mckpt" convert reshard "$source" weights $how --weights-only --dp 2 --no-sync -q
  options=()
  [ "$how" = --any-model ] || options=(--assets "$assets")
  expect 0 "$mckpt" verify weights --against "$source" --weights-only "${options[@]}"
  has out "weights: equal"
  has out "pass  against  9 tensors"
  has out "final_layernorm.weight.exp_avg"
  has out "(weights only)"
  expect 1 "$mckpt" verify weights --against "$source" "${options[@]}"
  has out "weights: not equal"
  has out " has this tensor"
done

expect 1 "$mckpt" verify "$source" --against "$source" --weights-only
has out "a state of the optimizer is here"
