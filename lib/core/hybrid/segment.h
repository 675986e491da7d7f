// Which layers of a pattern a pipeline rank runs.
//
// A pattern with pipes cuts its own stages: virtual stage v of rank r runs segment v * pp_size + r. Without
// pipes the physical layers are cut into equal stages (an old form), of which the first and the last may have
// their own size. Only what the stage needs is read: a fault in a later segment is not seen here.
#pragma once

#include "core/hybrid/pattern.h"

namespace mckpt {

struct StageRequest {
  i64 pp_size = 1, pp_rank = 0;
  std::optional<i64> vp_stage, first_stage_layers, last_stage_layers;
};

struct StageLayers {
  i64 physical_offset = 0, logical_offset = 0;
  std::vector<PatternItem> items;  // with indices of the whole pattern
};

// Of the main part, without the MTP parts. Throws kBadGrid or kBadRank where the request itself makes no
// sense: no stages, a rank beyond the last, a negative count.
//
// The flat dialect counts every byte of the earlier segments as a layer and does not look at them.
Checked<StageLayers> select_stage(std::string_view main_part, Dialect dialect, const StageRequest& request);

// Physical layers [begin, end).
struct LayerRange {
  i64 begin, end;
};
// The uneven cut of a pattern without pipes into two stages of given sizes is not checked by Megatron: the
// layers that it gives to no rank, or (`twice`) to both. Nothing where the sizes add up.
struct UnevenGap {
  LayerRange layers;
  bool twice;
};
std::optional<UnevenGap> uneven_gap(const LayerPattern& pattern, const StageRequest& request);

}  // namespace mckpt
