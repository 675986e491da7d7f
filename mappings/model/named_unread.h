// The tensors that entries under "unread" name. An entry of a map file may name a tensor that rows read under
// a condition that holds for this model, such as the output layer of a model that does not tie it: the entry
// is then without effect, and a note says which parameter reads the tensor.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class SourceTable;
struct ModelConfig;
struct Unread;

// The tensors of the file that the entry names, of all layers.
std::vector<i32> named_by(const Unread& entry, const ModelConfig& model, const SourceTable& sources);

// The parameters that read tensors which a map file names so.
class UnreadReaders {
 public:
  void watch(const std::vector<i32>& tensors) {
    for (i32 t : tensors) readers_.emplace(t, "");
  }
  bool awaits(i32 tensor) const {
    const auto watched = readers_.find(tensor);
    return watched != readers_.end() && watched->second.empty();
  }
  void read(i32 tensor, std::string parameter) { readers_[tensor] = std::move(parameter); }

  // "lm_head.weight is named ..., and is read by output_layer.weight in this model"; "": none is read.
  std::string note(const std::vector<i32>& tensors, const SourceTable& sources) const;

 private:
  std::map<i32, std::string> readers_;  // by tensor: the first parameter, or ""
};

}  // namespace mckpt::impl
