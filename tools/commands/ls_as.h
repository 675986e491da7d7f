// mckpt ls HF_DIR --as megatron|fsdp: what one rank of a Megatron run would hold of a Hugging Face model.
#pragma once

#include "core/base/error_code.h"
#include "core/base/int.h"
#include "tools/options/hf_model_flags.h"
#include "tools/options/layout_flags.h"

namespace mckpt::impl {

class CommandLine;
class ModelMap;
struct GlobalFlags;
struct RunSetup;
struct TensorChoice;

class LsAs {
 public:
  void declare(CommandLine& line);
  bool chosen() const { return !as_.empty(); }
  // Lists. pre: chosen(), and the line was parsed.
  Exit run(const GlobalFlags& flags, const std::string& path, const TensorChoice& choice, bool digest,
           int threads);

 private:
  void refuse_unmatched(const ModelMap& map, const RunSetup& setup) const;

  std::string as_;
  i64 rank_ = 0;
  GridFlags grid_;
  FsdpFlags fsdp_;
  ValueFlags values_{"auto"};
  HfModelFlags model_;
};

}  // namespace mckpt::impl
