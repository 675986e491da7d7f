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
#include <string>
#include <string_view>
#include <vector>

namespace mckpt::impl {

struct DiskTensors;
struct NamedTensor;
struct OwnNamesOptions;
class Store;

// Whether the table has a class of this model_type. `architecture`: the class; another one of the same type
// takes its place if it is not in the table.
bool has_disk_transforms(std::string_view model_type, std::string_view architecture);

// pre: has_disk_transforms(). Throws kUnknownModel for a tensor that transformers rearranges in a way that is
// not computed here, and for names that another release of transformers has in memory, unless its folder has
// them too; kSourceShape if a tensor cannot be divided.
DiskTensors transformed_tensors(const Store& store, std::span<const NamedTensor> model,
                                std::string_view model_type, std::string_view architecture,
                                const OwnNamesOptions& options);

// The tensors of a folder for one name in memory.
struct DiskPlace {
  std::vector<std::string> names{};  // parts, one below the other; {E} stands for the numbers of experts
  bool rearranged = false;           // the items are in another order, or in one tensor with others
};

// By the same table, for one name after another.
class DiskPlaces {
 public:
  // pre: has_disk_transforms().
  DiskPlaces(std::string_view model_type, std::string_view architecture);
  ~DiskPlaces();
  DiskPlace of(std::string_view name) const;

 private:
  struct Rules;
  std::unique_ptr<const Rules> rules_;
};

}  // namespace mckpt::impl
