// Finds the layers of one pipeline stage: by the pattern's own cuts (|), or by dividing the layers.
//
//   M-M-|M-M*-, pp 2        rank 1: the segment after the pipe, layers 4 to 8
//   M-M-M-M-, pp 2          rank 1: layers 4 to 7
//   M-M-M-M-, pp 3, first stage 2     rank 0: layers 0 and 1; ranks 1 and 2 share the 6 others
//
// A stage never begins inside a group.
#include "core/hybrid/segment.h"
#include "core/base/error.h"

#include <algorithm>

namespace mckpt::impl {
namespace {

PatternFailure failure(PatternFault fault, std::string detail) { return {fault, -1, std::move(detail)}; }

// Throws kBadGrid and kBadRank for numbers that no pattern could fit.
void check_request(const StageRequest& r) {
  auto negative = [](const std::optional<i64>& n) { return n && *n < 0; };
  if (r.pp_size < 1)
    throw Error(Code::kBadGrid, "the pipeline size must be positive").expected("1 or more").found(r.pp_size);
  if (r.pp_rank < 0 || r.pp_rank >= r.pp_size)
    throw Error(Code::kBadRank, "there is no such pipeline rank")
        .expected(cat("0 to ", r.pp_size - 1))
        .found(r.pp_rank);
  if (negative(r.vp_stage))
    throw Error(Code::kBadRank, "there is no such virtual pipeline stage")
        .expected("0 or more")
        .found(*r.vp_stage);
  for (const std::optional<i64>& layers : {r.first_stage_layers, r.last_stage_layers})
    if (negative(layers))
      throw Error(Code::kBadGrid, "the number of layers of a stage is negative")
          .expected("0 or more")
          .found(*layers);
}

// Segments before the wanted one are read for their numbers of layers; segments after it are not read.
Checked<StageLayers> piped_stage(std::string_view text, Dialect dialect, const StageRequest& r) {
  i64 segments = std::count(text.begin(), text.end(), '|') + 1;
  if (segments > 1 && segments % r.pp_size != 0)
    return failure(PatternFault::kSegmentsNotDivisible,
                   cat(segments, " segments, pipeline size ", r.pp_size));
  i64 virtual_stage = r.vp_stage.value_or(0);
  // The checks are in this order because the caller may give any number as virtual stage.
  if (virtual_stage >= segments || virtual_stage * r.pp_size + r.pp_rank >= segments)
    return failure(PatternFault::kSegmentOutOfRange,
                   cat("virtual stage ", virtual_stage, " of rank ", r.pp_rank, " of ", r.pp_size,
                       ", and the pattern has ", segments, segments == 1 ? " segment" : " segments"));
  i64 wanted = virtual_stage * r.pp_size + r.pp_rank;
  StageLayers stage;
  LayerCount count;
  for (i64 index = 0, begin = 0;; index++) {
    std::size_t pipe = text.find('|', begin);
    i64 end = pipe == text.npos ? std::ssize(text) : static_cast<i64>(pipe);
    if (index == wanted) stage = {count.physical, count.logical, {}};
    if (index < wanted && dialect == Dialect::kFlat) {
      count.physical += end - begin;
      count.logical += end - begin;
    } else if (auto f = scan_segment(text, begin, end, dialect, count, stage.items)) {
      return *f;
    }
    if (index == wanted) return stage;
    stage.items.clear();
    begin = end + 1;
  }
}

// The physical layers of the rank's stage, in a pattern of `layers` layers without pipes.
Checked<LayerRange> cut_layers(i64 layers, const StageRequest& r) {
  if (!r.first_stage_layers && !r.last_stage_layers) {
    if (layers % r.pp_size != 0)
      return failure(PatternFault::kLayersNotDivisible, cat(layers, " layers, pipeline size ", r.pp_size));
    i64 each = layers / r.pp_size;
    return LayerRange{r.pp_rank * each, (r.pp_rank + 1) * each};
  }
  // A count of 0 counts as given: its stage is not one of the middle stages.
  i64 first = r.first_stage_layers.value_or(0), last = r.last_stage_layers.value_or(0);
  i64 middle = checked_sub(checked_sub(layers, first, "the number of layers of the middle stages"), last,
                           "the number of layers of the middle stages");
  i64 stages = r.pp_size - r.first_stage_layers.has_value() - r.last_stage_layers.has_value();
  std::string numbers =
      cat(layers, " layers, first stage ", first, ", last stage ", last, ", pipeline size ", r.pp_size);
  if (stages > 0 && middle % stages != 0) return failure(PatternFault::kMiddleNotDivisible, numbers);
  if (first > layers || last > layers || (stages > 0 && middle < 0))
    return failure(PatternFault::kStageOutOfRange, numbers);
  if (r.first_stage_layers && r.pp_rank == 0) return LayerRange{0, first};
  if (r.last_stage_layers && r.pp_rank == r.pp_size - 1) return LayerRange{layers - last, layers};
  i64 each = middle / stages;  // this rank is a middle stage, so there is one
  i64 begin = first + (r.pp_rank - r.first_stage_layers.has_value()) * each;
  return LayerRange{begin, begin + each};
}

// The pattern is read as one segment; the stage takes the items that are wholly in its range.
Checked<StageLayers> cut_stage(std::string_view text, Dialect dialect, const StageRequest& r) {
  if (r.vp_stage) return failure(PatternFault::kVppWithoutPipes, cat("virtual stage ", *r.vp_stage));
  Checked<std::vector<PatternItem>> checked = check_segment(text, dialect);
  if (auto* f = std::get_if<PatternFailure>(&checked)) return *f;
  auto& items = std::get<std::vector<PatternItem>>(checked);
  Checked<LayerRange> cut = cut_layers(items.empty() ? 0 : items.back().physical_end(), r);
  if (auto* f = std::get_if<PatternFailure>(&cut)) return *f;
  LayerRange range = std::get<LayerRange>(cut);

  StageLayers stage{range.begin, 0, {}};
  for (const PatternItem& item : items) {
    for (i64 border : {range.begin, range.end})
      if (item.physical_first < border && border < item.physical_end())
        return PatternFailure{PatternFault::kSplitsGroup, item.byte - 1,
                              cat("layer ", border, " is inside the group of layers ", item.physical_first,
                                  " to ", item.physical_end() - 1)};
    if (item.physical_end() <= range.begin) stage.logical_offset++;
    if (item.physical_first >= range.begin && item.physical_end() <= range.end) stage.items.push_back(item);
  }
  return stage;
}

}  // namespace

// Pipes decide if there are any; counts for the first and last stage then contradict them.
Checked<StageLayers> select_stage(std::string_view main_part, Dialect dialect, const StageRequest& request) {
  check_request(request);
  bool pipes = main_part.find('|') != main_part.npos;
  if (pipes && (request.first_stage_layers || request.last_stage_layers))
    return failure(PatternFault::kUnevenWithPipes, "");
  return pipes || request.pp_size == 1 ? piped_stage(main_part, dialect, request)
                                       : cut_stage(main_part, dialect, request);
}

LayerPattern pattern_of_layers(const LayerPattern& whole, LayerRange layers) {
  std::string text;
  for (const PatternItem& item : whole.items) {
    if (item.physical_first < layers.begin || item.physical_end() > layers.end) continue;
    text += item.is_group ? cat("[", whole.symbols(item), "]") : std::string(whole.symbols(item));
  }
  for (i64 depth = 0; depth < whole.mtp_depths; depth++) text += cat("/", whole.mtp_part());
  return parse_pattern(text, whole.dialect);
}

// With two stages of given sizes there is no middle that must fit, so cut_layers() does not check the sum.
std::optional<UnevenGap> uneven_gap(const LayerPattern& pattern, const StageRequest& r) {
  if (r.pp_size != 2 || !r.first_stage_layers || !r.last_stage_layers || std::ssize(pattern.segments) > 1)
    return {};
  i64 end_of_first = *r.first_stage_layers, begin_of_last = pattern.physical_layers() - *r.last_stage_layers;
  if (end_of_first == begin_of_last) return {};
  bool twice = end_of_first > begin_of_last;
  return UnevenGap{{std::min(end_of_first, begin_of_last), std::max(end_of_first, begin_of_last)}, twice};
}

}  // namespace mckpt::impl
