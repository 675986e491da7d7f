// mckpt plot HF_DIR --as fsdp|torch_dist: the picture of a checkpoint that a training run of a grid would
// save of a Hugging Face model, planned from its config alone.
//
//   $ mckpt plot DeepSeek-V3 --as fsdp --tp 2 --ep 32 --dp 64 -o plan.html
#pragma once

#include <memory>
#include <string>

#include "mappings/model/stages.h"
#include "tools/options/hf_run_flags.h"

namespace mckpt::impl {

class CommandLine;
class Store;
struct FusedPicture;
struct HfToFsdpOptions;
struct TensorChoice;

// The options of this form of `plot`.
class PlotAs {
 public:
  void declare(CommandLine& line);
  bool chosen() const { return !as_.empty(); }
  // Throws kUsage for an option of the other form of a plan. pre: the line was parsed.
  void refuse_options_of_another(const CommandLine& line) const;
  // The planned checkpoint; what was chosen and inferred is noted. pre: chosen(), and the line was parsed.
  std::unique_ptr<Store> plan(const CommandLine& line, const std::string& path, int threads) const;
  // --parts: the parts of one parameter, in place of the checkpoint.
  bool parts() const { return parts_; }
  // Their picture. pre: parts(), and the line was parsed.
  FusedPicture parts_picture(const CommandLine& line, const std::string& path,
                             const TensorChoice& choice) const;
  // --memory: the memory of a rank of the run, in place of its checkpoint.
  bool memory() const { return memory_; }
  // Its drawing. pre: memory(), and the line was parsed.
  std::string memory_drawing(const CommandLine& line, const std::string& path) const;

 private:
  HfToFsdpOptions of_fsdp(const std::string& folder, int threads) const;

  std::string as_;
  bool memory_ = false, parts_ = false;
  HfRunFlags run_{"auto"};
  PipelineOptions pipeline_;
};

}  // namespace mckpt::impl
