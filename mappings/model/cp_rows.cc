// Chooses the slicing by the parameter's rule or name: Mamba mixers and gated delta nets are sliced by heads,
// and their convolutions by heads in each section; everything else is whole. The slices are computed by
// core/hybrid/cp_slice.h.
#include "mappings/model/cp_rows.h"

#include "core/fsdp/grid.h"
#include "mappings/config.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kMixer = "mixer.";

// Rows of a parameter of a Mamba mixer, of `all` rows.
std::vector<RowRange> mamba_rows(const Row& row, const MambaConfig& m, i64 tp, const CpRank& cp, i64 all) {
  std::string_view leaf = row.megatron.substr(kMixer.size());
  MambaSizes sizes{m.inner() / tp, m.heads / tp, m.groups / tp, m.state};
  if (row.rule == "mamba_conv") return mamba_cp_slice(sizes, cp).conv;
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
  if (row.starts_with(kMixer)) return mamba_rows(*p.row, model.mamba, grid.tp, cp, all);
  if (row.starts_with("self_attention.") && model.gdn.key_heads > 0)
    return gdn_rows(row, model.gdn, grid.tp, cp, all);
  return {{0, all}};
}

std::vector<RowRange> cp_slice_of(const ModelParameter& p, const ModelConfig& model, const Grid& grid,
                                  i64 cp_rank) {
  std::vector<RowRange> rows = cp_rows(p, model, grid, cp_rank);
  if (p.shape().rank() == 0 || rows == std::vector<RowRange>{{0, p.shape()[0]}}) rows.clear();
  return rows;
}

}  // namespace mckpt::impl
