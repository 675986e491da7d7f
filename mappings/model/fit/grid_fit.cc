// Checks which parallel sizes divide the layers, experts and heads of a model. The checks of heads matter
// with context parallelism only: the ranks of a context-parallel group hold the same parameters and share the
// heads among them.
#include "mappings/model/fit/grid_fit.h"

#include "core/base/error.h"
#include "core/fsdp/grid.h"
#include "mappings/config.h"
#include "mappings/model/fit/fitting_sizes.h"

#include <algorithm>
#include <functional>

namespace mckpt::impl {
namespace {

// Throws kGridMisfit.
void need_multiple(i64 size, i64 of, const char* message, const std::function<std::string()>& help) {
  if (size % of == 0) return;
  throw Error(Code::kGridMisfit, message).expected(cat("a multiple of ", of)).found(size).help(help());
}

bool has_mixer(const ModelConfig& model, Mixer mixer) {
  auto is = [&](const LayerSpec& layer) { return layer.mixer == mixer; };
  return std::ranges::any_of(model.text.layers, is) || std::ranges::any_of(model.mtp.layers, is);
}

// Megatron's gated delta net: both numbers of heads divide by tp*cp.
bool fits_gdn(const GdnConfig& gdn, i64 ranks) {
  return gdn.key_heads % ranks == 0 && gdn.value_heads % ranks == 0;
}

// Megatron's Mamba mixer: heads divide by tp*cp; the groups of a tensor-parallel rank divide by cp, or cp by
// them, where several ranks share a group. Groups that do not divide by tp are refused by the rules of its
// parameters.
bool fits_mamba_groups(const MambaConfig& mamba, i64 tp, i64 cp) {
  const i64 groups = mamba.groups % tp == 0 ? mamba.groups / tp : 0;
  return groups == 0 || cp % groups == 0 || groups % cp == 0;
}
bool fits_mamba(const MambaConfig& mamba, i64 tp, i64 cp) {
  return mamba.heads % (tp * cp) == 0 && fits_mamba_groups(mamba, tp, cp);
}

bool has_mamba(const ModelConfig& model) {
  return has_mixer(model, Mixer::kMamba) || has_mixer(model, Mixer::kAttentionAndMamba);
}

// With the tensor-parallel size as it is; where no size fits, with another one.
std::string cp_that_fit(const ModelConfig& model, i64 tp) {
  const std::string sizes = sizes_that_fit("cp", [&](i64 cp) {
    return (!has_mixer(model, Mixer::kGdn) || fits_gdn(model.gdn, tp * cp)) &&
           (!has_mamba(model) || fits_mamba(model.mamba, tp, cp));
  });
  return sizes.empty() ? "choose another `tp`" : cat(sizes, ", or another `tp`");
}

void refuse_gdn_misfit(const ModelConfig& model, const Grid& grid) {
  auto help = [&] { return cp_that_fit(model, grid.tp); };
  const i64 ranks = grid.tp * grid.cp;
  need_multiple(model.gdn.key_heads, ranks, "the key heads of the gated delta nets do not divide by tp*cp",
                help);
  need_multiple(model.gdn.value_heads, ranks,
                "the value heads of the gated delta nets do not divide by tp*cp", help);
}

void refuse_mamba_misfit(const ModelConfig& model, const Grid& grid) {
  auto help = [&] { return cp_that_fit(model, grid.tp); };
  const MambaConfig& mamba = model.mamba;
  need_multiple(mamba.heads, grid.tp * grid.cp, "the heads of the Mamba mixers do not divide by tp*cp", help);
  if (fits_mamba_groups(mamba, grid.tp, grid.cp)) return;
  need_multiple(mamba.groups / grid.tp, grid.cp,
                "of a tensor-parallel rank's number of Mamba groups and cp, neither divides the other", help);
}

// The fewest groups of keys and values that a layer has.
i64 fewest_groups(const ModelConfig& model) {
  i64 fewest = model.text.kv_groups;
  for (const TowerConfig& t : model.layer_sizes) fewest = std::min(fewest, t.kv_groups);
  return fewest;
}

}  // namespace

void refuse_stages(const ModelConfig& model, const Grid& grid) {
  if (grid.pp == 1) return;
  if (model.mtp.depths > 0 && model.mtp.one_stage)
    throw Error(Code::kGridMisfit,
                "Megatron's layers of this family's MTP have their sizes only without pipeline stages")
        .expected("`pp` 1")
        .found(grid.pp)
        .note(
            "on a later stage a real run builds them with the sizes of full attention, and cannot load them");
  auto shares = [](const TowerConfig& t) { return t.key_values == KeyValues::kOfEarlierLayer; };
  const char* what = model.layer_input > 0 ? "the second embedding, which every layer reads,"
                     : std::ranges::any_of(model.layer_sizes, shares) ? "keys and values of earlier layers"
                                                                      : nullptr;
  if (!what) return;
  throw Error(Code::kGridMisfit, cat(what, " cannot be read on another pipeline stage"))
      .expected("`pp` 1")
      .found(grid.pp);
}

void refuse_misfit(const ModelConfig& model, const Grid& grid) {
  need_multiple(std::ssize(model.text.layers), grid.pp,
                "the layers do not divide by the pipeline-parallel size",
                [&] { return sizes_that_divide("pp", std::ssize(model.text.layers)); });
  need_multiple(model.moe.experts, grid.ep, "the experts do not divide by the expert-parallel size",
                [&] { return sizes_that_divide("ep", model.moe.experts); });
  if (model.one_tensor_rank && grid.tp > 1)
    throw Error(Code::kGridMisfit, "Megatron's attention of this family has one tensor-parallel rank")
        .expected("`tp` 1")
        .found(grid.tp);
  if (i64 groups = fewest_groups(model); model.tp_within_groups && grid.tp > groups)
    throw Error(
        Code::kGridMisfit,
        "Megatron's model of this family has no more tensor-parallel ranks than groups of keys and values")
        .expected(cat("`tp` ", groups, " at most"))
        .found(grid.tp);
  if (grid.cp == 1) return;
  if (model.no_context_parallel)
    throw Error(Code::kGridMisfit, "Megatron's model of this family has no context parallelism")
        .expected("`cp` 1")
        .found(grid.cp);
  if (has_mixer(model, Mixer::kGdn)) refuse_gdn_misfit(model, grid);
  if (has_mamba(model)) refuse_mamba_misfit(model, grid);
}

std::string idle_sizes_note(const ModelConfig& model, const Grid& grid) {
  if (model.moe.experts > 0 || grid.ep * grid.etp == 1) return "";
  const bool ep = grid.ep > 1;
  return cat(ep ? "ep      " : "etp     ", "the model has no experts, so `", ep ? "ep" : "etp", "` ",
             ep ? grid.ep : grid.etp, " divides nothing");
}

}  // namespace mckpt::impl
