// DirectReads: which modules of a live model read parameters without calling the module that has them, as the
// rows of the family's table say (Row::gathered_with). Gathering such a module gathers these parameters too:
//
//   mixer.conv1d_weight    read by the layer around it       gathered with the layer, and with modules inside
//                                                            the layer that contain the parameter
//   decoder.shared_scale   read by decoder.layers.3.mixer,   gathered with that module, and with what it is
//                          a module elsewhere                sharded with
#pragma once

#include <span>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class ModuleTree;
struct ModelParameter;

class DirectReads {
 public:
  // Throws kBadMap if a row names modules and the model has none of them. The arguments are not kept, except
  // the tree, which outlives this object.
  DirectReads(const std::vector<ModelParameter>& parameters, const ModuleTree& tree);

  // Whether a module around this one, or the module itself, reads the parameter. pre: the parameter is inside
  // the module.
  bool around(i32 module, i32 parameter) const;

  // A module that reads a parameter that is not inside it.
  struct Read {
    i32 module, parameter;
  };
  std::span<const Read> elsewhere() const { return elsewhere_; }

 private:
  const ModuleTree& tree_;
  std::vector<i32> around_;  // by parameter: the outermost module around it that reads it; -1: none
  std::vector<Read> elsewhere_;
};

}  // namespace mckpt::impl
