// Who packed a checkpoint, in words.
#include "convert/dialects/fsdp/packed_by.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

std::string box_text(std::span<const i64> offsets, std::span<const i64> sizes) {
  if (Shape(sizes).items() == 0 || (sizes.empty() && offsets.empty())) return "nothing";
  return cat(dims_to_string(offsets), " + ", dims_to_string(sizes));
}

}  // namespace

std::string to_string(const PackedBy& by) {
  const PackingGuess& g = by.guess;
  std::string out = cat("Megatron-FSDP ", engine_name(g.engine));
  const std::vector<Strategy> strategies = by.strategies();
  for (std::size_t i = 0; i < strategies.size(); i++)
    out += cat(i == 0 ? ", " : " or ", strategy_name(strategies[i]));
  if (!by.no_trace && g.shards) {
    out += by.units.empty() ? ", no units" : by.units.size() == 1 ? ", unit " : ", units ";
    for (std::size_t i = 0; i < by.units.size(); i++) out += cat(i ? " and " : "", escaped(by.units[i]));
  }
  if (g.fp8) out += by.recipes.size() == 1 ? ", weights in 8 bits (mxfp8)" : ", weights in 8 bits";
  out += cat("; ", counted(g.grid.world(), "rank"), ": tp=", g.grid.tp);
  if (g.grid.ep > 1 || g.grid.etp > 1) out += cat(" ep=", g.grid.ep, " etp=", g.grid.etp);
  out += cat(" dp*cp=", g.grid.dp);
  if (g.grid.hsdp > 1)
    out += cat(" hsdp=", g.grid.hsdp, g.grid.outer == HsdpOuter::kShard ? " (shard)" : " (replicate)");
  if (g.bucket_items > 0) out += cat("; cut at ", with_commas(g.bucket_items), " items outside units");
  if (g.shards) {
    constexpr std::size_t kMost = 6;
    out += by.result.chunk_items.size() == 1 ? "; chunk factor" : "; chunk factors";
    for (std::size_t i = 0; i < by.result.chunk_items.size() && i < kMost; i++)
      out += cat(i ? ", " : " ", with_commas(by.result.chunk_items[i]));
    if (by.result.chunk_items.size() > kMost) out += " and more";
  }
  return out;
}

std::string disagreement_text(const Store& store, const PackedBy& by) {
  if (by.fits()) return "";
  const i64 wrong = by.result.parameters - by.result.agreeing;
  const std::string out =
      cat(wrong, " of ", counted(by.result.parameters, "parameter"), wrong == 1 ? " disagrees" : " disagree");
  if (!by.result.first) return out;
  const BoxDisagreement& d = *by.result.first;
  return cat(out, ", first ", escaped(store.name(d.tensor)), " of rank ", d.rank, ": expected ",
             box_text(d.expected_offsets, d.expected_sizes), ", found ",
             box_text(d.found_offsets, d.found_sizes));
}

}  // namespace mckpt::impl
