// Values that are finite and yet no weights: tensors of the model that are zero throughout, and values that
// stand powers of ten above all others. Told as warnings, from what the one read of all values has seen
// (NonFinite).
//
//   model.layers.0.mlp.up_proj.weight   0.3 at most
//   model.layers.1.mlp.up_proj.weight   zero throughout: implausible, because its like is not
//   model.layers.0.mlp.down_proj.weight bfloat16 6.8e+36 at [3, 7], values near it below 0.25: implausible
//   model.layers.0.mlp.up_proj.bias     zero throughout: biases begin so, and many stay so
//
// No healthy model may be named, so only matrices of the model are judged by zeros, and numbers that trained
// models are far from by their size.
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"
#include "io/store/finding.h"
#include "io/store/state_part.h"

namespace mckpt::impl {

class Store;
class TensorReader;
struct NonFinite;

// The store outlives it.
class Implausible {
 public:
  explicit Implausible(const Store& store) : store_(store), parts_(store) {}

  // Observations about a tensor, all of whose values were read.
  void add(i64 tensor, const NonFinite& values);
  // The tensors with implausible values, in their order. Where a zero matrix may be one that no training has
  // changed yet, the weights of norms are read again, a few numbers each. Throws what TensorReader::read()
  // throws.
  std::vector<Finding> findings(TensorReader& reader) const;

 private:
  bool is_untrained(TensorReader& reader) const;
  void add_zeros(TensorReader& reader, std::vector<std::pair<i64, Finding>>& out) const;

  const Store& store_;
  StateParts parts_;
  std::vector<i64> matrices_;  // weights of the model with two dimensions or more
  std::vector<i64> zeros_;     // of these, the ones that are zero throughout
  std::vector<std::pair<i64, Finding>> loud_;
};

}  // namespace mckpt::impl
