// The headers of a model's files without the files: what the tables promise, to be changed by a test.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/items/shape.h"
#include "mappings/family.h"
#include "mappings/model/expand.h"
#include "mappings/model/source_parts.h"
#include "mappings/model/walk.h"
#include "mappings/row.h"
#include "mappings/shape_text.h"

namespace mckpt::impl {

// Shapes that the tables promise, by name. `options`: the map's options.
inline std::map<std::string, Shape> promised_shapes(const ModelMap& map, const MapOptions& options = {}) {
  std::span<const Needs> forms = map.family().expert_forms;
  Needs form = options.expert_form.value_or(forms.empty() ? Needs::kAlways : forms[0]);
  std::map<std::string, Shape> shapes;
  const ModelConfig& model = map.model();
  each_site(map.family(), model, [&](const Site& site) {
    each_row(site, model, form, 0, model.moe.experts, [&](const Row& row, i64 expert) {
      each_source(site, row, model, [&](std::size_t s, i64 part, const Site& of) {
        shapes.emplace(source_name(of, row, row.sources[s].name, expert),
                       shape_of_part(row.sources[s], model, *of.tower, part));
      });
    });
  });
  return shapes;
}

class TensorList {
 public:
  struct Tensor {
    std::vector<i64> dims;
    DType dtype = DType::kBF16;
  };

  explicit TensorList(const ModelMap& promised, const MapOptions& options = {}) {
    for (const auto& [name, shape] : promised_shapes(promised, options)) {
      const bool counter = name.ends_with("num_batches_tracked") || name.find(".ngram_heads_") != name.npos ||
                           name.ends_with(".layer_multipliers");
      tensors_[name] = {{shape.dims().begin(), shape.dims().end()}, counter ? DType::kI64 : DType::kBF16};
    }
  }

  // pre: the tensor is there.
  Tensor& operator[](const std::string& name) { return tensors_.at(name); }
  void add(const std::string& name, std::vector<i64> dims, DType dtype = DType::kBF16) {
    tensors_[name] = {std::move(dims), dtype};
  }
  void remove(const std::string& name) { tensors_.erase(name); }
  void rename(const std::string& name, const std::string& to) {
    tensors_[to] = tensors_.at(name);
    tensors_.erase(name);
  }
  template <typename Fn>
  void each(Fn&& fn) {
    for (auto& [name, tensor] : tensors_) fn(name, tensor);
  }

  // This outlives the table.
  SourceTable table() const {
    SourceTable table;
    for (const auto& [name, tensor] : tensors_) table.add({name, tensor.dims, tensor.dtype, true});
    return table;
  }

 private:
  std::map<std::string, Tensor> tensors_;
};

}  // namespace mckpt::impl
