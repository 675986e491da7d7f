// Chooses the slicing by the parameter's name: Mamba mixers and gated delta nets are sliced by heads, and
// their convolutions by heads in each section; everything else is whole. The slices are computed by
// core/hybrid/cp_slice.h.
#include "live/device/cp_rows.h"

#include "core/fsdp/grid.h"
#include "core/hybrid/cp_slice.h"
#include "mappings/config.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

// Rows of a parameter of a Mamba mixer; `leaf` is its name in the mixer, `all` the number of its rows.
std::vector<RowRange> mamba_rows(std::string_view leaf, const MambaConfig& m, i64 tp, const CpRank& cp,
                                 i64 all) {
  MambaSizes sizes{m.inner() / tp, m.heads / tp, m.groups / tp, m.state};
  if (leaf == "conv1d_weight" || leaf == "conv1d_bias") return mamba_cp_slice(sizes, cp).conv;
  if (leaf == "dt_bias" || leaf == "A_log" || leaf == "D") return {mamba_cp_slice(sizes, cp).heads};
  return {{0, all}};
}

// Rows of a parameter of a gated delta net; `row` is its name in the layer.
std::vector<RowRange> gdn_rows(std::string_view row, const GdnConfig& g, i64 tp, const CpRank& cp, i64 all) {
  if (row.find(".conv1d.") != row.npos)
    return section_cp_slice(gdn_conv_sections({g.qk() / tp, g.v() / tp}), cp);
  if (row.ends_with(".dt_bias") || row.ends_with(".A_log")) {
    i64 heads = g.value_heads / tp;
    return section_cp_slice(std::span(&heads, 1), cp);
  }
  return {{0, all}};
}

}  // namespace

std::vector<RowRange> cp_rows(const ModelParameter& p, const ModelConfig& model, const Grid& grid,
                              i64 cp_rank) {
  std::string_view row = p.row->megatron;
  i64 all = p.shape().rank() > 0 ? p.shape()[0] : 1;
  CpRank cp{grid.cp, cp_rank};
  if (row.starts_with("mixer.")) return mamba_rows(row.substr(6), model.mamba, grid.tp, cp, all);
  if (row.starts_with("self_attention.") && model.gdn.key_heads > 0)
    return gdn_rows(row, model.gdn, grid.tp, cp, all);
  return {{0, all}};
}

}  // namespace mckpt::impl
