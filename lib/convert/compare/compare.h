// compare(): whether a checkpoint contains exactly what converting another one would write. The job that
// converts is carried out, with a comparison in place of the writing, so every rule, cast and cut is the one
// of the conversion:
//
//   tested              source              compared as                                in
//   a checkpoint        a model             chunks that an import would write          against_model.cc
//   a Hugging Face dir  a checkpoint        tensors that an export would write         against_export.cc
//   a checkpoint        a checkpoint        tensors of the same names, in any pieces   against_checkpoint.cc
//   one or both with the model's own names  tensors of the same names, in any pieces   against_own.cc
//   a model's files     a model's files     tensors of the same names, in any pieces   against_names.cc
//
// Both sides are read once, and once more only where they differ.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "convert/compare/checks/types.h"
#include "convert/compare/differences/counting.h"
#include "convert/keys/value_options.h"
#include "convert/open/options.h"
#include "core/base/int.h"
#include "io/choice/tensor_choice.h"
#include "io/store/soundness.h"
#include "io/verify/verify.h"

namespace mckpt::impl {

class Observer;
class Store;

// Plain values.
struct CompareOptions {
  CheckpointOptions opening{};  // of the checkpoint, or of both; its ranks are those of the source
  std::optional<i64> path_tp{}, path_etp{};  // ranks that wrote the tested side, if it does not record them
  ParamsDtype params_dtype{};                // the type through which an import passes the values of a model
  TypeClaim types{};                         // the types that the conversion was asked for
  // Of a side with several dicts that may be the model: the one that is; empty: it is found
  std::string model_dict{};
  bool weights_only = false;                 // the conversion left the states of the optimizer out
  bool any_type = false;  // floats of other types are compared after a cast to the type of the tested side
  Counting counting{};
  // By the names of the tested side: nothing else is compared, and no objects and files
  TensorChoice choice{};
  int threads = 1;
};

// VerifyReport::compared_as of two sides whose tensors have the same names.
inline constexpr std::string_view kComparedByName = "tensors of the same names";

// The outcome. `equal` is true if everything was compared and is equal.
struct Compared {
  VerifyReport report{};
  bool equal = false;
  std::vector<Oddities> oddities{};  // of either side
  std::string source_root{};         // what was opened of the source's path
};

// What of a path was opened: one of several checkpoints of a folder, or where a tracker file leads. Of an adapter the
// path, whose store is that of its base.
std::string opened_root(const Store& store, const std::string& path);

// The report has the checks "manifest", "assets", "objects" and those of Comparison, "types" if the caller
// claims any, and "casts" if equal tensors are stored in a type that loses values of the source. `tested`:
// the result of open_store(path). Throws what opening the source throws, damage of either side that is not
// about single records, and kUnaccounted if a checkpoint lacks parameters of the
// model, kNoSuchTensor if `choice` chooses nothing.
Compared compare(std::unique_ptr<Store> tested, const std::string& path, const std::string& source,
                 const CompareOptions& options, Observer& observer);

}  // namespace mckpt::impl
