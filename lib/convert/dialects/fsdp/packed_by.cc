// The search: few grids and units come into question, and most guesses end at their first parameter.
#include "convert/dialects/fsdp/packed_by.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/fsdp/param_groups.h"
#include "core/items/item_cast.h"
#include "core/items/shape.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/key.h"
#include "io/dcp/keys/without_states.h"
#include "io/dcp/run/sizes.h"
#include "io/store/dcp_dialect.h"
#include "io/store/lone_shard.h"
#include "io/store/store.h"
#include "mappings/fsdp/fp8.h"

namespace mckpt::impl {
namespace {

// More ranks than any run has: a number in a file's name can be anything.
constexpr i64 kMostRanks = i64{1} << 20;

// The ranks of the run as far as its files show: the highest writer, and all before it. 0: not known.
i64 writers(const Store& store, std::span<const i64> tensors) {
  i64 most = store.ranks() - 1;
  for (i64 t : tensors)
    for (i64 i = 0; i < store.chunk_count(t); i++)
      if (const Chunk c = store.chunk(t, i); c.rank < 0)
        return 0;
      else
        most = std::max<i64>(most, c.rank);
  return most < kMostRanks ? most + 1 : 0;
}

// Whether every tensor is cut into even rows over so many ranks, as torch's FSDP2 does.
bool is_even_over(const Store& store, std::span<const i64> tensors, i64 ranks) {
  for (i64 t : tensors) {
    const std::span<const i64> dims = store.dims(t);
    const i64 each = dims.empty() ? 1 : ceil_div(dims[0], ranks);
    for (i64 i = 0; i < store.chunk_count(t); i++) {
      const Chunk c = store.chunk(t, i);
      if (dims.empty() || Shape(c.sizes).items() == 0) continue;
      if (c.offsets[0] % each != 0 || c.sizes[0] != std::min(each, dims[0] - c.offsets[0])) return false;
    }
  }
  return true;
}

// One rank's, or even over all ranks, or over groups of them that have copies.
bool is_of_fsdp2(const Store& store, std::span<const i64> tensors, i64 ranks) {
  if (ranks == 1) return true;
  for (i64 shards = 1; shards <= ranks; shards++)
    if (ranks % shards == 0 && is_even_over(store, tensors, shards)) return true;
  return false;
}

std::vector<i64> tensors_of(const StoredParameters& parameters) {
  std::vector<i64> out;
  for (const StoredParameter& p : parameters.all)
    for (const StoredPart& part : p.parts) out.push_back(part.tensor);
  return out;
}

// The last ranks may have written nothing, so there may have been a few more.
std::vector<i64> worlds(i64 writers, i64 step) {
  std::vector<i64> out;
  for (i64 w = round_up(writers, step, "the ranks"); std::ssize(out) < 4; w += step) out.push_back(w);
  const i64 power = static_cast<i64>(std::bit_ceil(static_cast<u64>(out[0])));
  if (power % step == 0 && std::ranges::find(out, power) == out.end()) out.push_back(power);
  return out;
}

// HSDP instances of `dp` ranks: none, copies, or parts.
std::vector<std::pair<i64, HsdpOuter>> instances(i64 dp) {
  std::vector<std::pair<i64, HsdpOuter>> out{{1, HsdpOuter::kReplicate}};
  for (i64 n = 2; n <= dp && n <= 64; n++)
    if (dp % n == 0) out.insert(out.end(), {{n, HsdpOuter::kReplicate}, {n, HsdpOuter::kShard}});
  return out;
}

// The most HSDP instances among which the nearest packing is looked for.
constexpr i64 kMostInstances = 4;

// The shards of a buffer that so many ranks share.
i64 shards_of(i64 ranks, const Grid& grid) { return place_of(0, ranks, grid.hsdp, grid.outer).world; }

// The ranks of the guess that are others than the args say.
std::vector<std::string> other_ranks(const PackingGuess& guess, bool experts, const RunSizes& args) {
  const Grid& g = guess.grid;
  std::vector<std::string> out;
  auto compare = [&](std::string_view name, std::optional<i64> said, i64 found) {
    if (said && *said != found)
      out.push_back(cat(name, "=", *said, " by the args and ", found, " by the boxes"));
  };
  compare("tp", args.tensor_ranks, g.tp);
  if (experts) compare("ep", args.expert_ranks, g.ep), compare("etp", args.expert_tensor_ranks, g.etp);
  if (!guess.shards) return out;
  if (args.data_ranks) compare("dp*cp", *args.data_ranks * args.context_ranks.value_or(1), g.dp);
  compare("hsdp", args.fsdp_instances, g.hsdp);
  return out;
}

class Search {
 public:
  Search(const Store& store, DcpDialect dialect)
      : store_(store),
        dialect_(dialect),
        args_(dcp_run_sizes(store)),
        parameters_(stored_parameters(store, dialect)) {
    for (const StoredParameter& p : parameters_.all) {
      has_transformer_ |= p.layer_class == UnitClass::kTransformerLayer;
      has_mamba_ |= p.layer_class == UnitClass::kMambaLayer;
      has_second_names_ |= p.alike >= 0;
      has_linear_ |= p.linear;
      items_ += Shape(p.dims).items();
    }
  }

  std::optional<PackedBy> run() {
    const std::vector<i64> tensors = tensors_of(parameters_);
    const i64 ranks = tensors.empty() ? 0 : writers(store_, tensors);
    if (ranks == 0) return std::nullopt;
    const bool by_boxes_alone = dialect_ == DcpDialect::kStateDict;
    if (by_boxes_alone && is_of_fsdp2(store_, tensors, ranks)) return std::nullopt;
    list_guesses(ranks);
    for (const PackingGuess& guess : guesses_)
      if (GuessResult r = try_guess(store_, parameters_, guess, false); r.fits())
        return found(guess, std::move(r));
    return nearest(by_boxes_alone);
  }

 private:
  void list_guesses(i64 ranks) {
    const i64 tp = tensor_ranks(store_, parameters_, false);
    const i64 etp = parameters_.experts > 0 ? tensor_ranks(store_, parameters_, true) : 1;
    find_cuts(store_, parameters_, tp, etp);
    for (i64 world : worlds(ranks, std::lcm(tp, etp)))
      for (i64 ep = 1; ep <= std::min(std::max<i64>(parameters_.experts, 1), world / etp); ep++) {
        Grid grid{.tp = tp, .ep = ep, .etp = etp, .dp = world / tp};
        if (world % (etp * ep) != 0 || (parameters_.experts > 0 && parameters_.experts % ep != 0)) continue;
        if (parameters_.experts > 0 && !experts_fit(store_, parameters_, grid)) continue;
        for (auto [hsdp, outer] : instances(grid.dp)) {
          // Instances of one rank have everything whole.
          if (hsdp > 1 && hsdp == grid.dp && outer == HsdpOuter::kReplicate) continue;
          grid.hsdp = hsdp, grid.outer = outer;
          if (parameters_.experts > 0 && grid.edp() % hsdp != 0) continue;
          add_engines(grid);
        }
      }
    add_fp8();
    std::ranges::stable_partition(guesses_, [&](const PackingGuess& g) {
      return other_ranks(g, parameters_.experts > 0, args_).empty();
    });
    guesses_.insert(guesses_.end(), whole_.begin(), whole_.end());
  }

  // Whether all weights of linear layers can be of MXFP8. pre: find_cuts().
  bool has_whole_blocks(const Grid& grid) const {
    return std::ranges::all_of(parameters_.all, [&](const StoredParameter& p) {
      if (!p.linear) return true;
      std::vector<i64> dims = p.dims;
      if (p.cut >= 0) dims[p.cut] /= p.expert ? grid.etp : grid.tp;
      return dims[0] % kItemsPerMxfp8Scale == 0 && dims[1] % kItemsPerMxfp8Scale == 0;
    });
  }

  // The same packings with weights in 8 bits, behind those without: a run without them is more usual.
  void add_fp8() {
    const i64 without = std::ssize(guesses_);
    for (i64 i = 0; i < without && has_linear_; i++) {
      PackingGuess guess = guesses_[i];
      guess.fp8 = true;
      if (!recipes_of(guess).empty()) guesses_.push_back(guess);
    }
  }

  // v1 packs all recipes alike.
  std::vector<Fp8Recipe> recipes_of(const PackingGuess& guess) const {
    using enum Fp8Recipe;
    if (!guess.fp8) return {};
    std::vector<Fp8Recipe> out;
    if (guess.engine == Engine::kV1) out = {kTensorwise, kDelayed, kBlockwise};
    if (has_whole_blocks(guess.grid)) out.push_back(kMxfp8);
    return out;
  }

  void add_engines(const Grid& grid) {
    PackingGuess guess;
    guess.grid = grid;
    if (dialect_ != DcpDialect::kStateDict) add_units(guess);
    if (dialect_ == DcpDialect::kFsdpDtensor) return;
    guess.engine = Engine::kV2;
    add_units(guess);
  }

  void add_units(PackingGuess guess) {
    const bool both = has_transformer_ && has_mamba_;
    auto add = [&](bool transformer, bool mamba, bool stack) {
      guess.transformer_units = transformer, guess.mamba_units = mamba, guess.stack_units = stack;
      add_buckets(guess);
    };
    if (has_transformer_ || has_mamba_) add(has_transformer_, has_mamba_, false);
    if (both) add(true, false, false), add(false, true, false);
    if (both) add(false, false, true);
    // Layers outside of groups can be units beside them.
    if (both && parameters_.has_groups) add(false, true, true), add(true, false, true), add(true, true, true);
    add(false, false, false);
    if (guess.engine == Engine::kV1 && guess.grid.hsdp == 1) {
      guess.shards = false;
      whole_.push_back(guess);
    }
  }

  // Only models of more items than a bucket takes are cut by size. The default first: a real run has it.
  void add_buckets(PackingGuess& guess) {
    const i64 size = default_bucket_items(guess.engine, guess.grid.dp);
    for (i64 bucket : size > 0 && items_ >= size ? std::vector<i64>{size, 0} : std::vector<i64>{0})
      for (bool second : has_second_names_ ? std::vector<bool>{true, false} : std::vector<bool>{false}) {
        guess.bucket_items = bucket, guess.second_names = second;
        guesses_.push_back(guess);
      }
    guess.bucket_items = 0, guess.second_names = false;
  }

  PackedBy found(const PackingGuess& guess, GuessResult result) const {
    PackedBy by{.guess = guess, .result = std::move(result)};
    by.has_transformer_layers = has_transformer_, by.has_mamba_layers = has_mamba_;
    by.has_experts = parameters_.experts > 0;
    by.no_trace = guess.shards && shards_of(guess.grid.dp, guess.grid) == 1 &&
                  (parameters_.experts == 0 || shards_of(guess.grid.edp(), guess.grid) == 1);
    by.recipes = recipes_of(guess);
    name_units(by);
    remark(by);
    remark_recipes(by);
    return by;
  }

  // Names that other writers have too need more than a few parameters that agree by chance.
  std::optional<PackedBy> nearest(bool by_boxes_alone) const {
    const PackingGuess* best = nullptr;
    GuessResult result;
    // The grid that is seen at once: looking at every box of every grid would take long.
    for (const PackingGuess& guess : guesses_) {
      const Grid& g = guess.grid;
      if (!guess.shards || g.world() != guesses_[0].grid.world() || g.hsdp > kMostInstances) continue;
      GuessResult r = try_guess(store_, parameters_, guess, true);
      if (r.possible && (best == nullptr || r.agreeing > result.agreeing))
        best = &guess, result = std::move(r);
    }
    // Where half of the boxes disagree, no packing is near.
    if (best == nullptr || result.agreeing * 2 < result.parameters) return std::nullopt;
    if (by_boxes_alone && (!parameters_.megatron_names || result.agreeing * 5 < result.parameters * 4))
      return std::nullopt;
    return found(*best, std::move(result));
  }

  void name_units(PackedBy& by) const {
    const PackingGuess& g = by.guess;
    if (by.no_trace || !g.shards) return;
    if (!parameters_.megatron_names) {
      std::set<std::string> modules;
      for (const StoredParameter& p : parameters_.all)
        if (g.transformer_units && !p.layer.empty()) modules.insert(p.layer.substr(0, p.layer.rfind('.')));
      by.units.assign(modules.begin(), modules.end());
      return;
    }
    if (g.transformer_units && has_transformer_) by.units.emplace_back("TransformerLayer");
    if (g.mamba_units && has_mamba_) by.units.emplace_back("MambaLayer");
    if (g.stack_units) by.units.emplace_back("HybridStack");
  }

  void remark(PackedBy& by) const {
    const PackingGuess& g = by.guess;
    if (by.no_trace)
      by.remarks.emplace_back(
          "no rank shares a buffer with another, so that units and strategy leave no trace");
    else if (!g.shards)
      by.remarks.emplace_back(
          "every rank has every parameter whole; HSDP instances of one rank each have it so too");
    else if (g.stack_units)
      return;
    else if (!g.has_units() && (has_transformer_ || has_mamba_))
      by.remarks.emplace_back(
          "all layers are in the root group: optim and optim_grads have no units in megatron-core 0.19, and a run can be without");
    else if (has_mamba_ && !g.mamba_units)
      by.remarks.emplace_back(
          "Mamba layers are in the root group: the run had TransformerLayer alone as unit");
    else if (has_transformer_ && !g.transformer_units)
      by.remarks.emplace_back(
          "Transformer layers are in the root group: the run had MambaLayer alone as unit");
  }

  // Whether weights are of 8 bits, and by which recipe, as far as the boxes tell it.
  void remark_recipes(PackedBy& by) const {
    if (by.recipes.size() > 1) {
      std::string words;
      for (std::size_t i = 0; i < by.recipes.size(); i++)
        words += cat(i == 0                       ? ""
                     : i + 1 == by.recipes.size() ? " or "
                                                  : ", ",
                     fp8_recipe_name(by.recipes[i]));
      by.remarks.push_back(cat("boxes do not tell the recipe of the weights in 8 bits: ", words));
    }
    PackingGuess other = by.guess;
    other.fp8 = true;
    if (by.guess.fp8 || by.no_trace || !by.guess.shards || !has_linear_ || !by.fits()) return;
    if (!recipes_of(other).empty() && try_guess(store_, parameters_, other, false).fits())
      by.remarks.emplace_back("a run with its weights in 8 bits packs so, too");
  }

  const Store& store_;
  const DcpDialect dialect_;
  const RunSizes args_;  // nothing in it: the run has no args
  StoredParameters parameters_;
  bool has_transformer_ = false, has_mamba_ = false, has_second_names_ = false, has_linear_ = false;
  i64 items_ = 0;
  std::vector<PackingGuess> guesses_;
  std::vector<PackingGuess>
      whole_;  // every rank has everything: tried last, as small models may have no cuts
};

// A save of torch's FSDP2, known without a search: most state dicts are.
bool is_plainly_of_fsdp2(const Store& store) {
  std::vector<i64> tensors;
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (const DcpKey key = split_key(DcpDialect::kStateDict, store.name(t));
        key.section == DcpKey::Section::kModel && is_castable(store.dtype(t)) &&
        !is_without_states(key.parameter))
      tensors.push_back(t);
  const i64 ranks = writers(store, tensors);
  return ranks == 0 || is_of_fsdp2(store, tensors, ranks);
}

}  // namespace

std::vector<Strategy> PackedBy::strategies() const {
  if (no_trace) return {};
  if (!guess.shards) return {Strategy::kNoShard};
  if (guess.engine == Engine::kV2) {
    if (guess.grid.hsdp > 1 && guess.grid.outer == HsdpOuter::kShard) return {Strategy::kOptimGradsParams};
    return {Strategy::kOptimGradsParams, Strategy::kOptim, Strategy::kOptimGrads};
  }
  if (!units.empty() || guess.fp8) return {Strategy::kOptimGradsParams};
  return {Strategy::kOptim, Strategy::kOptimGrads, Strategy::kOptimGradsParams};
}

std::vector<std::string> contradictions(const PackedBy& by, const RunSizes& args) {
  if (by.no_trace || !by.fits()) return {};
  std::vector<std::string> out = other_ranks(by.guess, by.has_experts, args);
  const std::vector<Strategy> strategies = by.strategies();
  if (by.guess.shards && args.strategy && std::ranges::find(strategies, *args.strategy) == strategies.end())
    out.push_back(cat("strategy=", strategy_name(*args.strategy), " by the args and ",
                      strategy_name(strategies[0]), " by the boxes"));
  return out;
}

std::optional<PackedBy> packed_by(const Store& store) {
  const std::optional<DcpDialect> dialect = store.driver().dialect;
  if (!dialect || *dialect == DcpDialect::kPlain || *dialect == DcpDialect::kTorchDist) return std::nullopt;
  if (is_lone_shard(store)) return std::nullopt;
  // Pipeline stages that wrote their layers over each other's: no run of Megatron-FSDP has any.
  if (std::ranges::count(store.findings(), Code::kPipelineLoss, &Finding::code) > 0) return std::nullopt;
  if (*dialect == DcpDialect::kStateDict && is_plainly_of_fsdp2(store)) return std::nullopt;
  return Search(store, *dialect).run();
}

}  // namespace mckpt::impl
