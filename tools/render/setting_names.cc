// The settings that texts of the library may name. The flag of a setting is its name with hyphens:
// `source_tp` is shown as --source-tp. Other words in backquotes, such as commands, are left as they are; an
// odd backquote ends the search.
#include "tools/render/setting_names.h"

#include <algorithm>

#include "core/base/text.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kSettings[] = {
    "accept",
    "allow_overflow",
    "any_model",
    "assets",
    "base",
    "bucket_size",
    "card",
    "cp",
    "device",
    "dp",
    "dtype",
    "dtype_rule",
    "engine",
    "ep",
    "etp",
    "exclude",
    "expert_layout",
    "first_stage_layers",
    "follow_links",
    "freeze",
    "fsdp_module",
    "fsdp_unit",
    "fsdp_units_for",
    "hsdp",
    "hsdp_outer",
    "html",
    "hybrid_pattern",
    "include",
    "iteration",
    "keep_names",
    "keys",
    "like",
    "last_stage_layers",
    "layers",
    "make_vocab_size_divisible_by",  // of Megatron
    "map_file",
    "max_memory",
    "max_shard_size",
    "model_dict",
    "model_files",
    "norms",
    "overwrite",
    "params_dtype",
    "path_etp",
    "path_tp",
    "pattern",
    "phase_timeout",
    "pp",
    "pp_size",
    "rank",
    "rank_states",
    "rank_timeout",
    "report",
    "resume",
    "section",
    "source_ep",
    "source_etp",
    "source_hsdp",
    "source_tp",
    "spelling",
    "strategy",
    "tensors_only",
    "threads",
    "torch",  // of scripts/bootstrap
    "tp",
    "vocab_size",
    "vpp",
    "vp_stage",
    "weights_only",
    "without_mixers",
};

}  // namespace

std::string with_flags(std::string_view text) {
  std::string out;
  for (std::size_t from = 0; from < text.size();) {
    std::size_t open = std::min(text.find('`', from), text.size());
    std::size_t close = open == text.size() ? text.npos : text.find('`', open + 1);
    if (close == text.npos) return cat(out, text.substr(from));
    std::string_view name = text.substr(open + 1, close - open - 1);
    out += text.substr(from, open - from);
    if (std::ranges::find(kSettings, name) == std::end(kSettings)) {
      out += cat('`', name);
      from = close;  // which may open the next name
    } else {
      std::string flag(name);
      std::ranges::replace(flag, '_', '-');
      out += cat("--", flag);
      from = close + 1;
    }
  }
  return out;
}

}  // namespace mckpt::impl
