// The layer pattern of the run that a result is for. Layers, groups and MTP parts are those of the source; the
// pipes belong to the pipeline of the result, and so do the files that layers are in and what the args say:
//
//   source  [*-]M|[*E]M   pp 2      result  [*-]|M|[*E]|M   pp 4
//                                           [*-]M[*E]M      pp 1
//
// A flat pattern is treated likewise: names do not follow it, but stages do.
#pragma once

#include <optional>
#include <string>

#include "core/base/int.h"
#include "core/hybrid/pattern.h"

namespace mckpt::impl {

class CheckpointModel;
class ModelMap;
class Notes;
struct PipelineOptions;

// What the user, and the format of the result, say.
struct PatternChoice {
  i64 stages = 1;
  std::string given{};  // the pattern, with its pipes; "": pattern_on_stages() places them
  bool groups = true;   // the result has the groups of the source; false: layers have their own numbers
};

// Of a checkpoint. Nothing for a model that is no hybrid under its own names, and for a pattern that had and gets
// neither groups nor pipes. Notes pipes that change. Throws what pattern_on_stages() throws; kBadPattern for a
// given pattern with other layers or groups, kUsage for one of a model without a pattern.
std::optional<LayerPattern> result_pattern(const CheckpointModel& source, const PatternChoice& choice,
                                           const PipelineOptions& pipeline, Notes& notes);
// Of a model. Nothing for a model that is no hybrid, and for one without groups whose stages have one chunk of
// layers each. Throws likewise.
std::optional<LayerPattern> result_pattern(const ModelMap& model, const PatternChoice& choice,
                                           const PipelineOptions& pipeline);

}  // namespace mckpt::impl
