// Makes the tensors of a checkpoint of DeepSpeed ZeRO from its files:
//
//   float32 weights of trained parameters     flat parts of all ranks                model.norm.weight
//   states of their optimizer                 the same places of other parts         optimizer.state.NAME.exp_avg
//   buffers                                   `module`, as stored                    model.rotary.inv_freq
//   parameters that were not trained          their fragments, or `module`           in their own type
//   experts that were not trained             the files of experts                   in their own type
//   second names of shared parameters         the first name's bytes                 lm_head.weight
//   all other tensors                         by their path in the file              rng_state, FILE:NAME
//
// Copies of the trained parameters in `module` and in the files of experts (place.h) are not listed;
// comparisons list them.
#pragma once

#include "core/base/int.h"

namespace mckpt::impl {

class ZeroStore;
struct ZeroSave;

// The parameters of one save: of the only one, or of a tensor-parallel rank's. Numbers that do not add up
// become findings, and what cannot be placed by them is left out.
struct ZeroAssembled {
  i64 parts = 0;   // tensors that are parts of the model or its optimizer; the others follow them
  i64 copies = 0;  // that are not listed
};
ZeroAssembled assemble_zero(const ZeroSave& save, ZeroStore& store);

}  // namespace mckpt::impl
