// compare(): whether a checkpoint holds exactly what converting another one would write. The job that converts is
// carried out, with a comparison in place of the writing:
//
//   tested              source              compared as                                          in
//   a checkpoint        a Hugging Face dir  chunks that an import would write                    against_model.cc
//   a Hugging Face dir  a checkpoint        tensors that an export would write                   against_export.cc
//   a checkpoint        a checkpoint        tensors of the same names, in whatever pieces        against_checkpoint.cc
//   a model's files     a model's files     likewise                                             against_names.cc
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "convert/source/options.h"
#include "core/base/observer.h"
#include "io/verify/verify.h"

namespace mckpt {

struct CompareOptions {
  CheckpointOptions opening{};  // of the checkpoint, or of both; its ranks are those of the source
  // The ranks that wrote the tested side, where it does not say so, and the caller's names of these two.
  std::optional<i64> tested_tp{}, tested_etp{};
  const char *tested_tp_setting = "tested_tp", *tested_etp_setting = "tested_etp";
  // The type in which an import passes the values of a model on; empty: each keeps its own.
  std::function<std::optional<DType>(const ModelConfig&)> params_dtype{};
  int threads = 1;
};

// Adds the checks "manifest", "assets", "objects" and those of Comparison, and "casts" where what is equal no longer
// has all that the source has. Returns whether both sides are equal. `tested`: what open_store(path) gave. Throws what
// opening the source throws, what is wrong with either side other than single records, and kUnaccounted where a
// checkpoint lacks parameters of the model.
bool compare(std::unique_ptr<Store> tested, const std::string& path, const std::string& source,
             const CompareOptions& options, Observer& observer, VerifyReport& report);

}  // namespace mckpt
