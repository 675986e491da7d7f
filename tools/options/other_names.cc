// One table; a row counts only for commands that have the option it leads to.
#include "tools/options/other_names.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

struct OtherName {
  std::string_view name, option, help;
};
constexpr OtherName kOtherNames[] = {
    {"--target-tensor-parallel-size", "--tp", "did you mean --tp?"},
    {"--target-tensor-model-parallel-size", "--tp", "did you mean --tp?"},
    {"--tensor-parallel-size", "--tp", "did you mean --tp?"},
    {"--target-expert-parallel-size", "--ep", "did you mean --ep?"},
    {"--target-expert-model-parallel-size", "--ep", "did you mean --ep?"},
    {"--expert-parallel-size", "--ep", "did you mean --ep?"},
    {"--target-expert-tensor-parallel-size", "--etp", "did you mean --etp?"},
    {"--target-pipeline-parallel-size", "--pp", "did you mean --pp?"},
    {"--target-pipeline-model-parallel-size", "--pp", "did you mean --pp?"},
    {"--pipeline-parallel-size", "--pp", "did you mean --pp?"},
    {"--world-size", "--dp", "--dp D sets the number of ranks: tp * cp * pp * dp"},
    {"--num-gpus", "--dp", "--dp D sets the number of ranks: tp * cp * pp * dp"},
    {"--nproc-per-node", "--dp", "--dp D sets the number of ranks: tp * cp * pp * dp"},
    {"--make-vocab-size-divisible-by", "--vocab-size",
     "--vocab-size ROWS sets the padded number of rows itself"},
    {"--resume", "--overwrite",
     "the result is one file, which has its name only when it is complete: repeat the command without the option; it "
     "starts from the beginning and removes what an interrupted run left"},
    {"--input", "--overwrite", "the source and the result have no option: SRC DST"},
    {"--output", "--overwrite", "the source and the result have no option: SRC DST"},
    {"--input-dir", "--overwrite", "the source and the result have no option: SRC DST"},
    {"--output-dir", "--overwrite", "the source and the result have no option: SRC DST"},
    {"--load-dir", "--overwrite", "the source and the result have no option: SRC DST"},
    {"--save-dir", "--overwrite", "the source and the result have no option: SRC DST"},
};

}  // namespace

std::string help_for_other_name(std::string_view name, std::span<const std::string> options) {
  auto row = std::ranges::find(kOtherNames, name, &OtherName::name);
  if (row == std::end(kOtherNames) || std::ranges::find(options, row->option) == options.end()) return "";
  return std::string(row->help);
}

}  // namespace mckpt::impl
