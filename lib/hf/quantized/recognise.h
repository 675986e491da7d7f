// Finds the quantised tensors of a store: by the names and types of codes and scales, with the sizes of
// blocks and groups that the config gives. Shapes never decide about sizes: they are checked.
//
//   w.weight F8_E4M3 [300, 130] + w.weight_scale_inv F32 [3, 2]    blocks of 128 x 128 by config.json: 3 x 2 scales
//                                 w.weight_scale_inv F32 [2, 2]    a finding: expected [3, 2]
//
// docs/formats/quantized.md lists the names of all dialects.
#pragma once

#include <vector>

#include "hf/quantized/config.h"
#include "hf/quantized/scheme.h"
#include "io/store/finding.h"

namespace mckpt::impl {

class Store;

// A plain value.
struct QuantizedModel {
  std::vector<QuantizedTensor> tensors;  // in the order of their codes in the store
  std::vector<i64> beside;  // tensors that are not weights: scales, shapes, scales of activations; ascending
  std::vector<i64> of_activations;  // of these, scales and zero points of activations and caches; ascending
  std::vector<Finding> findings;    // contradictions, and warnings
  bool power_scales = false;        // the config says that scales are powers of two

  bool empty() const { return tensors.empty() && findings.empty() && of_activations.empty(); }
  // The first finding that is not a warning: the values cannot be known. nullptr: there is none.
  const Finding* contradiction() const;
};

// `declared`: what the files beside the weights declare. Reads the shapes of packed integers whose number of
// columns nothing else tells, and no other data. Without a config.json, blocks are 128 x 128; a config.json
// that declares nothing contradicts codes and scales.
QuantizedModel recognise(const Store& store, const QuantDeclaration& declared);
// Whether tensors are codes and scales by their names and types, whatever a config says.
bool has_codes(const Store& store);

}  // namespace mckpt::impl
