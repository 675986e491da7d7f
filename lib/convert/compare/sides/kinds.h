// The ways to open two sides, of which open_sides() chooses one.
#pragma once

#include <memory>
#include <string>

#include "convert/compare/sides/sides.h"

namespace mckpt::impl {

// A checkpoint of Megatron against the model that it was made of: a Hugging Face folder, or a checkpoint of a
// training run with the model's own names.
Sides sides_of_import(std::unique_ptr<Store> tested, std::unique_ptr<Store> source, const SidePaths& paths,
                      const CompareOptions& options);
// A Hugging Face folder against the checkpoint that it was exported from.
Sides sides_of_export(std::unique_ptr<Store> tested, std::unique_ptr<Store> source, const SidePaths& paths,
                      const CompareOptions& options);
// Two checkpoints of Megatron, of one model or of two.
Sides sides_of_megatron(std::unique_ptr<Store> tested, std::unique_ptr<Store> source,
                        const CompareOptions& options);

// Whether one is a checkpoint with the model's own names, and the other the folder of a Hugging Face model:
// the two have the same names. The checkpoint may be either side.
bool is_own_beside_model(const Store& checkpoint, const Store& folder);
// Whether the two are of different formats with the model's own names, at least one of them a checkpoint of a
// training run: a conversion of one to the other keeps the tensors of the model, and nothing beside them.
// A file of torch and one of safetensors are a pair, too, where the names differ by wrappers, or by what
// a conversion leaves out; not by the latter in a list of differences. `model_dict`: of either side, if it is
// there.
bool is_own_pair(const Store& tested, const Store& source, const std::string& model_dict, bool listed);
// Whether both are DCP folders with the model's own names: one kind of checkpoint, whatever dialect the
// tensors beside the model make of each.
bool is_dcp_of_own_names(const Store& one, const Store& other);
// pre: is_own_beside_model() in one of the two orders.
Sides sides_of_own_beside_model(std::unique_ptr<Store> tested, std::unique_ptr<Store> source,
                                const CompareOptions& options);
// pre: is_own_pair().
Sides sides_of_own_pair(std::unique_ptr<Store> tested, std::unique_ptr<Store> source, const SidePaths& paths,
                        const CompareOptions& options);

// Says why a tensor is compared with one of another name: in the line that diff has about that, and as a note
// elsewhere.
void tell_names(const std::string& text, const CompareOptions& options, Sides& sides);

// As the files have them: no conversion gives the tensors other names.
Sides plain_sides(std::unique_ptr<Store> tested, std::unique_ptr<Store> source);

}  // namespace mckpt::impl
