// compare(): whether a checkpoint holds exactly what converting another one would write. The job that
// converts is carried out, with a comparison in place of the writing:
//
//   tested              source              compared as                                in
//   a checkpoint        a Hugging Face dir  chunks that an import would write          against_model.cc
//   a Hugging Face dir  a checkpoint        tensors that an export would write         against_export.cc
//   a checkpoint        a checkpoint        tensors of the same names, in any pieces   against_checkpoint.cc
//   a model's files     a model's files     likewise                                   against_names.cc
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/keys/value_options.h"
#include "convert/source/options.h"
#include "core/base/int.h"
#include "io/store/soundness.h"
#include "io/verify/verify.h"

namespace mckpt::impl {

class Observer;
class Store;

struct CompareOptions {
  CheckpointOptions opening{};  // of the checkpoint, or of both; its ranks are those of the source
  std::optional<i64> path_tp{}, path_etp{};  // ranks that wrote the tested side, where it does not say so
  ParamsDtype params_dtype{};                // through which an import passes the values of a model
  int threads = 1;
};

struct Compared {
  VerifyReport report{};
  bool equal = false;
  std::vector<Oddities> oddities{};  // of either side
};

// The report has the checks "manifest", "assets", "objects" and those of Comparison, and "casts" where what
// is equal no longer has all that the source has. `tested`: what open_store(path) gave. Throws what opening
// the source throws, what is wrong with either side other than single records, and kUnaccounted where a
// checkpoint lacks parameters of the model.
Compared compare(std::unique_ptr<Store> tested, const std::string& path, const std::string& source,
                 const CompareOptions& options, Observer& observer);

}  // namespace mckpt::impl
