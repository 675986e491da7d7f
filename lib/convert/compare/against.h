// The parts of compare(): one function for each pair of what the two sides can be.
//
//   tested                 source                 function
//   a checkpoint           a model                against_model        with the import of the source
//   a Hugging Face dir     a checkpoint           against_export       with the export of the source
//   either of them with the model's own names     against_own_export, against_own_import
//   two formats, or sections, with these names    against_own_pair
//   a quantised model      a source of values     against_quantized    quantised again
//   two checkpoints                               against_checkpoint   by name, perhaps translated first
//   two stores of the same names                  against_names        tensor by tensor
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DType : u8;
class CheckpointModel;
class Comparison;
class Observer;
class Store;
struct CompareOptions;
struct FusedTables;
struct Oddities;
struct VerifyReport;

// What all functions get: the options, and the places for findings. References only; it lives during one
// compare().
struct Comparing {
  const CompareOptions& options;
  Comparison& comparison;
  Observer& observer;
  VerifyReport& report;
  std::vector<Oddities>& oddities;

  void note_oddities(const CheckpointModel& opened) const;
};

// All of these return whether everything was compared and is equal.

// A checkpoint against the model that it was made of, at the path `source`: a Hugging Face folder, or a
// checkpoint of a training run with the model's own names. `opened`: what open_store(source) returned.
bool against_model(std::unique_ptr<Store> tested, const std::string& source, const Store& opened,
                   const Comparing& c);
// Whether the source is such a checkpoint of a training run.
bool is_own_source(const Store& source);
// A Hugging Face folder, at `path`, against the checkpoint that it was exported from.
bool against_export(const Store& tested, const std::string& path, std::unique_ptr<Store> source,
                    const Comparing& c);
// Whether one is a checkpoint with the model's own names, and the other the folder of a Hugging Face model:
// the two have the same names. The checkpoint may be either side.
bool is_own_beside_model(const Store& checkpoint, const Store& folder);
bool against_own_export(const Store& tested, std::unique_ptr<Store> source, const Comparing& c);
bool against_own_import(std::unique_ptr<Store> tested, const Store& source, const Comparing& c);
// Whether both are DCP folders with the model's own names: one kind of checkpoint, whatever dialect the tensors
// beside the model make of each.
bool is_dcp_of_own_names(const Store& one, const Store& other);
// Whether the two are of different formats with the model's own names, at least one of them a checkpoint of a
// training run: a conversion of one to the other keeps the tensors of the model, and nothing beside them.
// `model_dict`: of either side, if it is there.
bool is_own_pair(const Store& tested, const Store& source, const std::string& model_dict);
bool against_own_pair(std::unique_ptr<Store> tested, const std::string& path, std::unique_ptr<Store> source,
                      const std::string& source_path, const Comparing& c);
// What quantising the source like the model at `path` gives, computed when it is read; null: the source has not its
// tensors. Throws what opening the source throws.
std::unique_ptr<Store> quantized_like(const std::string& path, const std::string& source,
                                      const CompareOptions& options);
// `codes`: a quantised model as it is stored; `made`: what quantized_like() returned.
bool against_quantized(const Store& codes, const Store& made, const Comparing& c);
// Two checkpoints, of one model or of two.
bool against_checkpoint(std::unique_ptr<Store> tested, std::unique_ptr<Store> source, const Comparing& c);

// Whether the tensors that look like weights are stored in the types that the conversion was asked for.
// `takes_type`: as in TypeCheck::add_by_name().
bool check_types_by_name(const Store& tested, const Store& source, const Comparing& c,
                         const std::vector<bool>& takes_type = {});

// What a conversion changes on purpose where both sides have the same names. A function that is empty:
// nothing.
struct Intended {
  // Why a tensor or an object of the source may be missing in the result; "": it may not.
  std::function<std::string(std::string_view name)> left_out{};
  // Why a tensor of the source may be missing whose items another one has, as was seen: nothing differs. ""
  std::function<std::string(std::string_view name)> repeated{};
  // The type that a tensor of the source gets.
  std::function<DType(i64 tensor)> type{};
};
// A conversion casts floats of the source to the types that they have in its result: whatever these are, since
// check_types_by_name() compares them with what was asked for. Refers to both arguments.
Intended intended_casts(const Store& tested, const Store& source);
// Two stores whose tensors have the same names, in any pieces. The types that were asked for are checked by
// the caller, who may know which tensors are weights. `fused`: tensors that are stored rank after rank by
// different numbers of ranks; null: there are none.
bool against_names(const Store& tested, const Store& source, const FusedTables* fused, const Comparing& c,
                   const Intended& intended = {});

}  // namespace mckpt::impl
