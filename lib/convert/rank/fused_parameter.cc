// Looks for the parameter on one rank of each cell, then asks the layout of that cell for the items of every
// rank.
#include "convert/rank/fused_parameter.h"

#include <map>
#include <set>
#include <tuple>

#include "convert/open/source_model.h"
#include "convert/rank/rank_share.h"
#include "core/base/error.h"
#include "io/choice/tensor_choice.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/expand.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {
namespace {

// The parameters of the ranks that have the parameter, and its number among them.
struct Found {
  Cell cell;
  std::vector<ModelParameter> parameters;
  i32 number = -1;
};

class Search {
 public:
  Search(const ModelMap& map, const ShareRun& run, const RunSetup& setup, const TensorChoice& choice)
      : map_(map), run_(run), setup_(setup), choice_(choice), chosen_(choice.test()) {}

  Found run() {
    std::set<std::tuple<i64, i64, i64>> cells;
    for (i64 rank = 0; rank < run_.grid.stage_ranks(); rank++) {
      const Cell cell = cell_of(run_.grid, rank);
      if (cells.emplace(cell.tp, cell.etp, cell.ep).second) look(cell);
    }
    if (fused_.size() == 1) return std::move(found_);
    refuse();
  }

 private:
  void look(const Cell& cell) {
    std::vector<ModelParameter> parameters = map_.parameters(run_.grid, cell, setup_);
    run_.frozen.apply(parameters);
    for (i32 i = 0; i < static_cast<i32>(parameters.size()); i++) {
      const ModelParameter& p = parameters[i];
      names_.insert(p.global_name);
      if (!chosen_(p.global_name) && !chosen_(cat("model.module.", p.global_name))) continue;
      if (stored_pieces(p, map_.model()).size() < 2) {
        whole_.insert(p.global_name);
      } else if (fused_.insert(p.global_name).second && fused_.size() == 1) {
        found_ = {cell, parameters, i};
      }
    }
  }

  [[noreturn]] void refuse() const {
    const std::vector<std::string> fused(fused_.begin(), fused_.end()), whole(whole_.begin(), whole_.end());
    if (!fused.empty())
      throw Error(Code::kUsage,
                  cat("a picture of the parts is of one parameter, and ", fused.size(), " match"))
          .each_note(fused, 8);
    if (!whole.empty())
      throw Error(Code::kUsage, "the parameter is saved as one tensor: it has no parts")
          .each_note(whole, 8)
          .help("linear_fc1.weight of a gated MLP and in_proj.weight of a gated delta net have parts");
    const std::vector<std::string_view> names(names_.begin(), names_.end());
    (void)choice_.choose(names);  // throws with the nearest name
    throw Error(Code::kNoSuchTensor, "no parameter matches").found(escaped(choice_.pattern));
  }

  const ModelMap& map_;
  const ShareRun& run_;
  const RunSetup& setup_;
  const TensorChoice& choice_;
  std::function<bool(std::string_view)> chosen_;
  std::set<std::string> names_, fused_, whole_;
  Found found_;
};

// The ranks that have a part of the parameter which no lower rank has.
std::vector<FusedShare> shares_of(const Found& found, const FsdpLayout& layout, const Grid& grid,
                                  Strategy strategy) {
  const bool one_has_all = strategy == Strategy::kNoShard;
  const ModelParameter& p = found.parameters[found.number];
  const FsdpLayout::StoredKey whole{found.number, {"", 0, p.shape()[0]}};
  std::vector<FusedShare> shares;
  for (i64 rank = 0; rank < grid.stage_ranks(); rank++) {
    const Cell cell = cell_of(grid, rank);
    const bool same_cell =
        p.expert() ? cell.etp == found.cell.etp && cell.ep == found.cell.ep : cell.tp == found.cell.tp;
    const FsdpPlace place = p.expert() ? expert_place(grid, cell) : dense_place(grid, cell);
    if (one_has_all && !shares.empty()) break;
    if (same_cell && place.replica == 0) shares.push_back({rank, layout.share(whole, cell).items});
  }
  return shares;
}

}  // namespace

FusedParameter fused_parameter(const std::string& path, const ShareRun& run, const TensorChoice& choice) {
  refuse_pipeline(run.grid);
  const RankShare of_rank(path, run, 0, ShareForm::kWrapped, false);
  const HfModel& model = of_rank.model();
  const ModelMap& map = *model.map;
  const Found found = Search(map, run, of_rank.setup(), choice).run();
  const ModelParameter& p = found.parameters[found.number];
  FsdpSetup sharding = run.fsdp;
  sharding.saved = false;
  const FsdpLayout layout(found.parameters, map.model(), run.grid, sharding);
  FusedParameter out;
  out.name = p.global_name, out.shape = p.shape(), out.expert = p.expert(), out.notes = notes_of(model);
  for (const Piece& piece : stored_pieces(p, map.model()))
    out.cut.parts.push_back({std::string(piece.name), items_of(piece, p.shape().row_items())});
  out.cut.shares = shares_of(found, layout, run.grid, sharding.strategy);
  return out;
}

}  // namespace mckpt::impl
