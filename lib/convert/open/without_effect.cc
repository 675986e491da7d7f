// One list of the settings, which every door asks.
#include "convert/open/without_effect.h"

#include "convert/open/options.h"
#include "core/base/error.h"
#include "io/store/store.h"

namespace mckpt::impl {

std::vector<GivenSetting> given_settings(const CheckpointOptions& how) {
  std::vector<GivenSetting> out;
  if (how.source_tp) out.push_back({how.tp_setting, true});
  if (how.source_etp) out.push_back({how.etp_setting, true});
  if (!how.model.map_file.empty()) out.push_back({"map_file"});
  if (how.model.expert_layout != ExpertLayout::kAuto) out.push_back({"expert_layout"});
  return out;
}

void refuse_without_effect(const std::vector<GivenSetting>& given, const Store& store, std::string_view whose,
                           bool table_is_read) {
  for (const GivenSetting& setting : given) {
    if (!setting.of_ranks && table_is_read) continue;
    throw Error(
        Code::kUsage,
        setting.of_ranks
            ? cat("`", setting.name, "` is for checkpoints of Megatron, and ", whose, " the names of a model")
            : cat("`", setting.name, "` is about a table between a model's names and Megatron's, and ", whose,
                  " the names of a model, which need none here"))
        .file(store.root())
        .found(format_text(store.format()))
        .help(cat("leave `", setting.name, "` out"));
  }
}

}  // namespace mckpt::impl
