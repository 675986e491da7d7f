// The check "main" of `verify`: a weight in half precision is its main weight, rounded, and a float32 one is
// equal to it. A run copies every main weight (fp32) to the weight that the model computes with after each
// step, so a save has both, and they agree:
//
//   decoder.layers.mlp.linear_fc1.weight                              bf16   0.5
//   optimizer.state.fp32_param.decoder.layers.mlp.linear_fc1.weight   fp32   0.50012207   rounds to 0.5: agrees
//
//   pass  main     11 tensors      weights are the main weights of the optimizer, rounded
//   FAIL  main     11 tensors      weights against the main weights of the optimizer
//         problem[MC1311]: ...
//
// A NaN agrees with every NaN: a cast of a GPU gives it other bits.
#pragma once

namespace mckpt::impl {

class Observer;
class Store;
struct VerifyReport;

// Adds the check if the store has main weights by parameter: in a DCP folder of any dialect, in one of
// DeepSpeed ZeRO 1 or 2 (with `module` and the files of experts), or under the names that a view gives to the
// files of Megatron's ranks. Both are read, as a phase of their own. A tensor that cannot be read is counted
// as unseen, with a finding unless the report has one about it. Throws kInterrupted.
void check_main_weights(const Store& store, int threads, Observer& observer, VerifyReport& report);

}  // namespace mckpt::impl
