// One table; a row counts only for commands that have the option it leads to.
#include "tools/options/other_names.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

struct OtherName {
  std::string_view name, option, help;
};
constexpr std::string_view kNoGrid =
    "a Hugging Face folder has no grid, and that of the source is read from it; leave the option out";
constexpr OtherName kOtherNames[] = {
    {"--tensor-parallel", "--tp", "did you mean --tp?"},
    {"--expert-parallel", "--ep", "did you mean --ep?"},
    {"--expert-tensor-parallel", "--etp", "did you mean --etp?"},
    {"--pipeline-parallel", "--pp", "did you mean --pp?"},
    {"--context-parallel", "--cp", "did you mean --cp?"},
    {"--data-parallel", "--dp", "did you mean --dp?"},
    {"--world-size", "--dp", "--dp D sets the number of ranks: tp * cp * pp * dp"},
    {"--num-gpus", "--dp", "--dp D sets the number of ranks: tp * cp * pp * dp"},
    {"--nproc-per-node", "--dp", "--dp D sets the number of ranks: tp * cp * pp * dp"},
    {"--tp", "--max-shard-size", kNoGrid},
    {"--pp", "--max-shard-size", kNoGrid},
    {"--ep", "--max-shard-size", kNoGrid},
    {"--dp", "--max-shard-size", kNoGrid},
    {"--torch-dtype", "--dtype", "did you mean --dtype?"},
    {"--force", "--overwrite", "did you mean --overwrite?"},
    {"--hf-model", "--assets", "did you mean --assets HF_DIR, the folder of the original model?"},
    {"--hf-model-path", "--assets", "did you mean --assets HF_DIR, the folder of the original model?"},
    {"--hf-path", "--assets", "did you mean --assets HF_DIR, the folder of the original model?"},
    {"--origin-hf-dir", "--assets", "did you mean --assets HF_DIR, the folder of the original model?"},
    {"--hf-dir", "--assets", "did you mean --assets HF_DIR, the folder of the original model?"},
    {"--model", "--assets", "did you mean --assets HF_DIR, the folder of the original model?"},
    {"--config", "--assets", "did you mean --assets HF_DIR, the folder of the original model?"},
    {"--tokenizer-path", "--assets", "did you mean --assets HF_DIR, the folder of the original model?"},
    {"--like", "--scheme",
     "in export, --assets HF_DIR is the quantised model: --scheme like-source --assets HF_DIR"},
    {"-f", "--overwrite", "did you mean --overwrite?"},
    {"--bf16", "--dtype", "did you mean --dtype bf16?"},
    {"--fp16", "--dtype", "did you mean --dtype fp16?"},
    {"--base-model", "--base", "did you mean --base?"},
    {"--source", "--against", "did you mean --against?"},
    {"--reference", "--against", "did you mean --against?"},
    {"--rtol", "--against", "--against compares bits; `mckpt diff A B` shows how far values differ"},
    {"--atol", "--against", "--against compares bits; `mckpt diff A B` shows how far values differ"},
    {"--resume", "--overwrite",
     "the result is one file, which has its name only when it is complete: repeat the command without the option; it starts from the beginning and removes what an interrupted run left"},
    {"--input", "--overwrite", "the source and the result have no option: SRC DST"},
    {"--output", "--overwrite", "the source and the result have no option: SRC DST"},
    {"--input-dir", "--overwrite", "the source and the result have no option: SRC DST"},
    {"--output-dir", "--overwrite", "the source and the result have no option: SRC DST"},
    {"--load-dir", "--overwrite", "the source and the result have no option: SRC DST"},
    {"--save-dir", "--overwrite", "the source and the result have no option: SRC DST"},
};

// The spelling of the table: "--target_tensor_model_parallel_size" is "--tensor-parallel".
std::string plain(std::string_view name) {
  std::string out(name);
  std::ranges::replace(out, '_', '-');
  std::size_t parallel = out.find("-parallel");
  if (parallel == out.npos) return out;
  if (out.ends_with("-size")) out.resize(out.size() - 5);
  for (std::string_view part : {"target-", "-model"})
    if (std::size_t at = out.find(part); at < parallel) out.erase(at, part.size());
  return out;
}

}  // namespace

std::string help_for_other_name(std::string_view name, std::span<const std::string> options) {
  const std::string spelt = plain(name);
  auto row = std::ranges::find(kOtherNames, std::string_view(spelt), &OtherName::name);
  if (row == std::end(kOtherNames) || std::ranges::find(options, row->option) == options.end()) return "";
  return std::string(row->help);
}

}  // namespace mckpt::impl
