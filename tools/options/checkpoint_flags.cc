// The flags that say how to read a sharded checkpoint. The list of damage that --accept takes is the
// library's (convert/source/damage.h); the help text names the codes.
#include "tools/options/checkpoint_flags.h"

#include <algorithm>

#include "convert/source/damage.h"
#include "convert/source/options.h"
#include "core/base/error.h"
#include "hf/model_options.h"
#include "tools/options/command_line.h"

namespace mckpt::impl {
namespace {

std::vector<std::string> names_of(std::span<const Code> codes) {
  std::vector<std::string> names;
  for (Code code : codes) names.push_back(code_name(code));
  return names;
}

}  // namespace

void AcceptFlag::declare(CommandLine& line) {
  line.option(
          "--accept CODE", names_,
          "accept this problem (repeatable): MC1311 missing half or state, MC1312 missing "
          "layers or experts, MC1313 lost pipeline stages, MC1315 files of two saves, MC1317 parameters that "
          "were not trained and are in no file, MC2017 scales and codes that are NaN, infinite or negative")
      .words(names_of(acceptable_damage()));
}

std::vector<Code> AcceptFlag::codes() const {
  std::vector<Code> codes;
  for (const std::string& name : names_) {
    auto code = std::ranges::find(acceptable_damage(), name, code_name);
    if (code == acceptable_damage().end())
      throw Error(Code::kUsage, "--accept takes only codes of damage after which the rest can be converted")
          .expected("MC1311, MC1312, MC1313, MC1315, MC1317 or MC2017")
          .found(escaped(name));
    codes.push_back(*code);
  }
  return codes;
}

void CheckpointFlags::declare(CommandLine& line) {
  declare_assets(
      line,
      "folder of the original model, or of its config.json: gives names, packing, data types and tokenizer");
  declare_rest(line);
}

void CheckpointFlags::declare_assets(CommandLine& line, const std::string& what) {
  line.option("--assets HF_DIR", assets_, what).common();
}

void CheckpointFlags::declare_rest(CommandLine& line) {
  line.option("--source-tp N", source_tp_,
              "number of tensor-parallel ranks that wrote the checkpoint, if it does not say so itself");
  line.option(
      "--source-etp N", source_etp_,
      "number of expert-tensor-parallel ranks that wrote the checkpoint, if it does not say so itself");
  declare_of_model(line);
}

void CheckpointFlags::declare_of_model(CommandLine& line) {
  accept_.declare(line);
  model_.declare(line);
}

CheckpointOptions CheckpointFlags::options() const {
  CheckpointOptions options;
  options.assets = assets_;
  options.source_tp = source_tp_, options.source_etp = source_etp_;
  options.accept = accept_.codes();
  options.model = model_.options();
  return options;
}

}  // namespace mckpt::impl
