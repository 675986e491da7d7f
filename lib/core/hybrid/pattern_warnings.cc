// Sentences about groups whose layers share names, and about stages that lose layers or run some twice. Every
// warning has a name for scripts.
//
//   duplicate_keys      [**]M     both layers of the group write decoder.layers.0.self_attention.*
//   layers_lost         8 layers, pp 2, first stage 3, last stage 4: no stage has layer 3
//   last_stage_empty    M*|/M*    the last stage has MTP and the output layer, and no layer of the main part
#include "core/hybrid/pattern_warnings.h"

#include "core/base/text.h"
#include "core/hybrid/keys.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/pattern_fault.h"
#include "core/hybrid/segment.h"

namespace mckpt::impl {

std::string range_words(const LayerRange& layers) {
  if (layers.end - layers.begin == 1) return cat("layer ", layers.begin);
  return cat("layers ", layers.begin, " to ", layers.end - 1);
}

std::vector<PatternWarning> pattern_warnings(const LayerPattern& pattern) {
  std::vector<PatternWarning> out;
  for (const GroupHazard& h : group_hazards(pattern)) {
    std::string_view symbols = pattern.symbols(pattern.items[h.logical_index]);
    std::string who = cat("decoder.layers.", h.logical_index, ": '", symbols[h.first_member], "' and '",
                          symbols[h.second_member], "' of the group [", escaped(symbols, 16), "] ");
    if (h.same_keys)
      out.push_back(
          {"duplicate_keys", who + "write the same keys: such a checkpoint cannot be saved correctly"});
    else
      out.push_back(
          {"shared_family", who + "share a name family: a key does not tell which of them it belongs to"});
  }
  if (pattern.segments.size() > 1 && pattern.segments.back().item_count == 0)
    out.push_back(
        {"last_stage_empty",
         cat("segment ", pattern.segments.size() - 1,
             ", the last one, has no layer of the main part: versions of Megatron that apply the final norm ",
             "behind the last layer of a stage apply it nowhere",
             pattern.mtp_depths > 0 ? ", and MTP and the output layer read values without it" : "")});
  return out;
}

std::vector<PatternWarning> stage_warnings(std::string_view main, Dialect dialect,
                                           const StageRequest& request) {
  Checked<LayerPattern> whole = check_pattern(main, dialect);
  if (const auto* failure = std::get_if<PatternFailure>(&whole))
    return {{"invalid_elsewhere",
             cat("this stage is valid, and the pattern as a whole is not: ", fault_sentence(*failure, main),
                 ", byte ", failure->byte, ", ", fault_name(failure->fault))}};
  const LayerPattern& pattern = std::get<LayerPattern>(whole);
  std::vector<PatternWarning> out = pattern_warnings(pattern);
  if (auto gap = uneven_gap(pattern, request)) {
    std::string layers = range_words(gap->layers);
    if (gap->twice)
      out.push_back(
          {"layers_twice", cat("both stages get ", layers, ": the stage sizes add up to too much")});
    else
      out.push_back({"layers_lost", cat("no stage gets ", layers, ": the stage sizes add up to too little")});
  }
  if (request.pp_size > 1 && std::ssize(pattern.segments) == 1)
    out.push_back(
        {"uncut_pipeline", "a pipeline over a pattern without '|' is an old form; cut it with '|'"});
  return out;
}

}  // namespace mckpt::impl
