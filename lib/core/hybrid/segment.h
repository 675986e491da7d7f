// The layers of a pattern that a pipeline rank runs.
//
// A pattern with pipes cuts its own stages: virtual stage v of rank r runs segment v * pp_size + r. Without
// pipes the physical layers are cut into equal stages (an old form); the first and the last may have their
// own size. Only the part that the stage needs is read, so a fault in a later segment is not reported here.
#pragma once

#include "core/hybrid/pattern.h"

namespace mckpt::impl {

// Which stage of which pipeline is asked for. The two counts are layers of the first and of the last stage,
// if they have their own.
struct StageRequest {
  i64 pp_size = 1, pp_rank = 0;
  std::optional<i64> vp_stage, first_stage_layers, last_stage_layers;
};

// The layers of the stage, and how many layers are before it.
struct StageLayers {
  i64 physical_offset = 0, logical_offset = 0;
  std::vector<PatternItem> items;  // with indices of the whole pattern
};

// The stage's layers of the main part, without MTP parts. Throws kBadGrid or kBadRank if the request is
// invalid: no stages, a rank beyond the last, a negative count.
//
// The flat dialect counts every byte of the earlier segments as a layer without a check.
Checked<StageLayers> select_stage(std::string_view main_part, Dialect dialect, const StageRequest& request);

// Physical layers [begin, end).
struct LayerRange {
  i64 begin, end;
};
// These layers as a pattern of their own, with the MTP part of the whole: how a stage counts its layers.
//
//   [*-]M|[*E]-/*    layers 3 to 5    [*E]-/*
//
// pre: no group is cut.
LayerPattern pattern_of_layers(const LayerPattern& whole, LayerRange layers);
// Megatron does not check the cut of a pattern without pipes into two stages of given sizes. These are the
// layers that no rank has, or (`twice`) that both have. Nothing if the sizes add up.
struct UnevenGap {
  LayerRange layers;
  bool twice;
};
std::optional<UnevenGap> uneven_gap(const LayerPattern& pattern, const StageRequest& request);

}  // namespace mckpt::impl
