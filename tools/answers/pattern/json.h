// The answers of `mckpt pattern` as JSON. The fields are listed in docs/json.md.
//
//   {"schema": "mckpt.pattern/1", "ok": true, "dialect": "grouped", "main_pattern": "*-", ...,
//    "physical_kinds": "*-", "counts": {"*": 1, ..., "E": 0}, "kind_index_maps": {"*": {"0": 0}, ...}, ...}
#pragma once

#include <span>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

enum class Dialect : u8;
class Output;
struct LayerPattern;
struct PatternFailure;
struct PatternItem;
struct PatternWarning;
struct StageLayers;

// Each writes one whole answer.
void write_pattern_json(Output& out, const LayerPattern& pattern, std::span<const PatternWarning> warnings);
void write_segment_json(Output& out, std::string_view text, Dialect dialect,
                        std::span<const PatternItem> items);
void write_stage_json(Output& out, std::string_view main, Dialect dialect, const StageLayers& stage,
                      std::span<const PatternWarning> warnings);
void write_failure_json(Output& out, std::string_view pattern, const PatternFailure& failure);

}  // namespace mckpt::impl
