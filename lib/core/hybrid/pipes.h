// The pipes of a pattern: where the segments end that pipeline stages run. A model has the same layers and
// the same names whatever pipes there are, so a run with other stages has the same pattern with other pipes:
//
//   [*-]M|[*E]M    1 segment     [*-]M[*E]M
//                  4 segments    [*-]|M|[*E]|M
#pragma once

#include <optional>

#include "core/hybrid/pattern.h"

namespace mckpt::impl {

// The pattern as one segment.
LayerPattern without_pipes(const LayerPattern& pattern);
// The same layers without groups; pipes and MTP parts stay.
LayerPattern without_groups(const LayerPattern& pattern);
// Whether two patterns have the same layers in the same groups, MTP parts included.
bool same_but_pipes(const LayerPattern& a, const LayerPattern& b);

// The pattern in so many segments. Pipes of the pattern stay where they can: segments are joined, or each is
// divided, and only where neither gives the number are all pipes placed anew. Segments that are new have
// layers as equal in number as groups allow, and at least one. Nothing if there are fewer items than
// segments; a pattern that already has the number is returned as it is, with segments that are empty.
// pre: segments >= 1. Time: the length of the pattern times its logarithm.
std::optional<LayerPattern> with_segments(const LayerPattern& pattern, i64 segments);

}  // namespace mckpt::impl
