// Whether the tensors have the layers that the config counts. A config of another depth leaves whole layers
// of tensors without a partner, and one sentence says more than their names:
//
//   config.json says 6 layers, the tensors are of layers 0 to 3       14 more tensors are missing for the same reason
#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

class SourceTable;
struct Site;

class LayerCounts {
 public:
  explicit LayerCounts(i64 layers) : layers_(layers) {}

  // A tensor that the site needs was found, or is missing. Sites that are not a layer of the decoder say
  // nothing.
  void needed(const Site& site, bool found);
  // A tensor that nothing reads: whether it is of a layer beyond the last, because its name differs from a
  // tensor of layer 0 only in the number.
  // pre: all sites were visited.
  bool is_beyond(std::string_view name, const SourceTable& sources);
  // Whether no tensor of the layer is there.
  bool is_absent(i64 layer) const;

  // The sentence, if whole layers are absent or beyond the last; "" if the numbers of layers agree.
  std::string sentence() const;

 private:
  i64 layers_;
  std::map<i64, bool> found_;  // by layer: whether any of its tensors was found
  std::set<i64> beyond_;
  std::set<std::string_view> fronts_;  // what is in front of the number of a layer: "model.layers."
};

}  // namespace mckpt::impl
