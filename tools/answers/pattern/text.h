// The answers of `mckpt pattern` for people: one function for each question that the command answers
// (tools/commands/pattern.cc), and one for a pattern that is refused. They only print; everything that they
// print is computed in core/hybrid.
#pragma once

#include <span>
#include <string_view>

namespace mckpt::impl {

class Output;
struct LayerPattern;
struct PatternFailure;
struct PatternItem;
struct PatternWarning;
struct StageLayers;
struct StageRequest;

// `verbose` adds the path of every layer in memory.
void write_pattern_text(Output& out, const LayerPattern& pattern, bool verbose);
void write_stage_text(Output& out, std::string_view pattern, const StageLayers& stage,
                      const StageRequest& request, bool verbose);
void write_segment_text(Output& out, std::string_view text, std::span<const PatternItem> items, bool verbose);
void write_warnings_text(Output& out, std::span<const PatternWarning> warnings);
// The pattern with a mark below the byte at fault, the class, and what to do.
void write_failure_text(Output& out, std::string_view pattern, const PatternFailure& failure);

}  // namespace mckpt::impl
