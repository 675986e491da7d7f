// Sides: the two sides of a comparison, each opened so that a conversion of the source can be planned into
// the layout of the tested side. Whatever the two are, the answer is this one value:
//
//   tested                 source                 opened as
//   Megatron's             a model                sharded with the source's model, and table
//   a Hugging Face folder  Megatron's             table, and sharded with the folder's model
//   Megatron's             Megatron's             sharded, both under the names of fsdp_dtensor
//   the model's own names, on either side         plain: the tensors that a conversion writes
//   anything else                                 plain: the tensors as the files have them
//
// Opening says all that is known of the pair before a tensor is compared: what a conversion changes on
// purpose, what is beside the model, and why objects are not compared.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "convert/compare/differences/option_groups.h"
#include "convert/compare/sides/changes.h"
#include "convert/open/opened.h"

namespace mckpt::impl {

class Store;
struct CompareOptions;

// Names of tensors that are beside the model on one side.
struct BesideModel {
  std::vector<std::string> names{};
  std::vector<std::string> floats{};  // of these, those that may be weights
  std::string reason = "beside the model, whose tensors alone are compared";
};

struct Sides {
  Opened tested{}, source{};
  // The source with the tensors that a conversion makes of it; null: it makes none.
  std::unique_ptr<const Store> completed{};
  std::string compared_as{};         // in the words of a report
  std::vector<std::string> notes{};  // of how the two are compared
  Changes changes{};
  // Why objects are not compared; "": neither side has any; nothing: they are compared.
  std::optional<std::string> objects_apart{};
  std::optional<OptionDifferences> options{};  // of the optimizer, where they are compared apart
  std::vector<BesideModel> beside{};
  std::set<i64> copied{};  // tensors of the tested side that are not compared
  bool names_states = false;  // a state of the tested side is reported, as the conversion leaves states out
  // Both are sharded, and tensors stored rank after rank meet at the items of the model.
  bool one_model = false;
  bool checks_types = true;        // that the conversion was asked for
  std::vector<bool> takes_type{};  // as in TypeCheck::add_by_name()
  bool computed = false;  // a side has tensors that are computed when they are read, whatever its format is
  bool any_type = false;  // types that nobody asked for are cast, as with CompareOptions::any_type

  // The stores of the tensors. A completed source has no objects: `tested` and `source` themselves have them.
  const Store& tested_store() const { return tested.store(); }
  const Store& source_store() const { return completed ? *completed : source.store(); }
  // Whether the two meet at the items of a model, and not at names.
  bool of_items() const { return (tested.sharded && source.table) || (tested.table && source.sharded); }
};

// Stores with the paths that they were opened from.
struct SidePaths {
  std::string tested, source;
};

// Takes two open stores, quantised ones as values. Throws what opening a model, a checkpoint of Megatron and
// one with the model's own names throws; kUnknownFormat for a lone file beside files of Megatron; kUsage for
// a quantised model that is tested against a checkpoint, and for a dict of sides whose dicts are not looked
// at.
Sides open_sides(std::unique_ptr<Store> tested, std::unique_ptr<Store> source, const SidePaths& paths,
                 const CompareOptions& options);

// The source quantised like the model at `paths.tested`, computed when it is read; null: the source lacks its
// tensors. Throws what opening the source throws.
std::unique_ptr<Store> quantized_like(const SidePaths& paths, const CompareOptions& options);
// `codes`: a quantised model as it is stored; `made`: what quantized_like() returned; `copied`: names of
// tensors that it has from the codes' own files. A comparison of these would prove nothing.
Sides sides_of_codes(std::unique_ptr<Store> codes, std::unique_ptr<Store> made,
                     const std::vector<std::string>& copied);

// Whether the store is a DCP folder, or has the tensors of each rank by themselves.
bool is_sharded(const Store& store);
// Whether the store is a checkpoint of a training run with the model's own names, and no Hugging Face folder.
bool is_own_source(const Store& store);
// Whether the store is such a checkpoint or one file of safetensors: the config.json of its model is
// elsewhere.
bool is_model_without_config(const Store& store);

}  // namespace mckpt::impl
