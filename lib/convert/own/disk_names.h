// Tensors of a model of transformers as its Hugging Face folder has them, from those that the model has in
// memory. They differ from version 5 of transformers on, which stacks the experts of a layer and splits them
// when it saves:
//
//   in memory   model.layers.0.mlp.experts.gate_up_proj [4, 20, 12]      gate rows above up rows
//   on disk     model.layers.0.mlp.experts.0.gate_proj.weight [10, 12]
//               model.layers.0.mlp.experts.0.up_proj.weight   [10, 12]   and so on for 1, 2, 3
//
// Which of them are split depends on the model: gpt-oss has stacks in its folder.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "convert/own/model_section.h"
#include "convert/views/piece_store.h"
#include "hf/folder/model_class.h"

namespace mckpt::impl {

struct OwnNamesOptions;

// A tensor of a view: its name and shape, and the pieces of the source that it is made of.
struct PiecedTensor {
  std::string name;
  std::vector<i64> dims;
  std::vector<StorePiece> pieces;
};

struct DiskTensors {
  std::vector<PiecedTensor> tensors;
  bool renamed = false;  // some have other names than in memory
};

// Throws kUnknownAssets for a stack of experts if nothing says which model it is; kUnknownModel if the model
// is not one whose stacks are known; kSourceShape if a stack is not one.
DiskTensors disk_tensors(const Store& store, std::span<const NamedTensor> model,
                         const OwnNamesOptions& options);

// The shape of a tensor by its name in memory: a stack has its shape from the shapes of the experts. Nothing
// if it does not follow from the folder's.
std::optional<std::vector<i64>> shape_in_memory(const TensorShapes& folder, std::string_view name,
                                                std::string_view model_type);

// Whether experts of a layer are one tensor under the name that transformers gives it in memory.
bool has_stacks(std::span<const NamedTensor> model);
bool has_stacks(const Store& model);

// Whether the name in memory names a stack of experts.
bool is_stack(std::string_view name);

// A few bytes of a file can declare a stack of any number of experts without items.
inline constexpr i64 kMostModelTensors = i64{1} << 19;
// Throws kSourceShape if the experts of a stack, beside so many tensors, are more than any model has.
void check_room(const Store& store, i64 tensor, i64 tensors);

// Adds the rows [first_row, first_row + rows) of each expert of a stack [experts, rows of all, columns], as a
// tensor each; `name` gives its name.
struct ExpertRows {
  i64 tensor = 0, first_row = 0, rows = 0;
};
template <typename Name>
void add_experts(std::vector<PiecedTensor>& out, const Store& store, const ExpertRows& of, Name&& name) {
  std::span<const i64> dims = store.dims(of.tensor);
  check_room(store, of.tensor, std::ssize(out));
  for (i64 e = 0; e < dims[0]; e++)
    out.push_back({name(e), {of.rows, dims[2]}, {{of.tensor, {e}, of.first_row, of.rows}}});
}
// Throws kSourceShape unless the tensor is such a stack, of so many experts, rows and columns; 0: any number.
void check_stack(const Store& store, i64 tensor, i64 experts, i64 rows, i64 columns);

}  // namespace mckpt::impl
