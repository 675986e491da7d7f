// Checks which parallel sizes divide the layers, experts and heads of a model. The checks of heads matter
// with context parallelism only: the ranks of a context-parallel group hold the same parameters and share the
// heads among them.
#include "mappings/model/grid_fit.h"

#include "core/base/error.h"
#include "core/fsdp/grid.h"
#include "mappings/config.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

// Throws kGridMisfit.
void need_multiple(i64 size, i64 of, const char* message, const char* help) {
  if (size % of == 0) return;
  throw Error(Code::kGridMisfit, message).expected(cat("a multiple of ", of)).found(size).help(help);
}

bool has_mixer(const ModelConfig& model, Mixer mixer) {
  auto is = [&](const LayerSpec& layer) { return layer.mixer == mixer; };
  return std::ranges::any_of(model.text.layers, is) || std::ranges::any_of(model.mtp.layers, is);
}

constexpr const char* kOtherCp = "choose another `cp` or `tp`";

// Megatron's gated delta net: both numbers of heads divide by tp*cp.
void refuse_gdn_misfit(const GdnConfig& gdn, const Grid& grid) {
  i64 ranks = grid.tp * grid.cp;
  need_multiple(gdn.key_heads, ranks, "the key heads of the gated delta nets do not divide by tp*cp",
                kOtherCp);
  need_multiple(gdn.value_heads, ranks, "the value heads of the gated delta nets do not divide by tp*cp",
                kOtherCp);
}

// Megatron's Mamba mixer: heads divide by tp*cp; the groups of a tensor-parallel rank divide by cp, or cp by
// them, where several ranks share a group.
void refuse_mamba_misfit(const MambaConfig& mamba, const Grid& grid) {
  need_multiple(mamba.heads, grid.tp * grid.cp, "the heads of the Mamba mixers do not divide by tp*cp",
                kOtherCp);
  if (mamba.groups % grid.tp != 0) return;  // the rules of its parameters refuse that
  i64 groups = mamba.groups / grid.tp;
  if (groups == 0 || grid.cp % groups == 0) return;
  need_multiple(groups, grid.cp,
                "of a tensor-parallel rank's number of Mamba groups and cp, neither divides the other",
                kOtherCp);
}

}  // namespace

void refuse_stages(const ModelConfig& model, const Grid& grid) {
  if (grid.pp == 1) return;
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
                "the layers do not divide by the pipeline-parallel size", "choose another `pp`");
  need_multiple(model.moe.experts, grid.ep, "the experts do not divide by the expert-parallel size",
                "choose another `ep`");
  if (grid.cp == 1) return;
  if (model.no_context_parallel)
    throw Error(Code::kGridMisfit, "Megatron's model of this family has no context parallelism")
        .expected("`cp` 1")
        .found(grid.cp);
  if (has_mixer(model, Mixer::kGdn)) refuse_gdn_misfit(model.gdn, grid);
  if (has_mixer(model, Mixer::kMamba) || has_mixer(model, Mixer::kAttentionAndMamba))
    refuse_mamba_misfit(model.mamba, grid);
}

}  // namespace mckpt::impl
