// How the tensors of a model of transformers in memory become the tensors of its folder, by the class of the
// model, for classes that the rules of convert/own/disk_rules.h do not cover: what save_pretrained() does,
// transform by transform, from a table that is made of transformers' own.
//
//   a name           layers.0.mlp.fc1.weight         becomes  blocks.0.mlp.up.weight
//   a stack          experts.gate_up_proj [4, 20, 12]  becomes  experts.0.w1.weight [10, 12], experts.0.w3.weight, ...
//   rows             qkv.weight [30, 8]              becomes  q.weight [10, 8], k.weight, v.weight
//   a join           q.weight, k.weight, v.weight    become   qkv.weight
#pragma once

#include <memory>
#include <span>
#include <string_view>

namespace mckpt::impl {

struct DiskTensors;
struct NamedTensor;
struct OwnNamesOptions;
class Store;

// Whether the table has a class of this model_type. `architecture`: the class; another one of the same type takes
// its place if it is not in the table.
bool has_disk_transforms(std::string_view model_type, std::string_view architecture);

// pre: has_disk_transforms(). Throws kUnknownModel for a tensor that transformers rearranges in a way that is not
// computed here; kSourceShape if a tensor cannot be divided.
DiskTensors transformed_tensors(const Store& store, std::span<const NamedTensor> model,
                                std::string_view model_type, std::string_view architecture,
                                const OwnNamesOptions& options);

}  // namespace mckpt::impl
