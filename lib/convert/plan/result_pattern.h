// The layer pattern of the run that a result is for. Layers, groups and MTP parts stay as the source has
// them. The pipes follow the pipeline of the result; files and args follow the pipes:
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

// The choices of the user, and of the format of the result.
struct PatternChoice {
  i64 stages = 1;
  std::string given{};  // the pattern, with its pipes; "": pattern_on_stages() places them
  bool groups = true;   // the result can have groups; false: layers have their own numbers
};

// The pattern for a result that is made of a checkpoint. Nothing if the model is not a hybrid under its own
// names, or if its pattern had and gets neither groups nor pipes. Notes pipes that change, groups that the
// result cannot have, and a hybrid whose model is a GPT model: its layers get the names of that. Throws what
// pattern_on_stages() and given_pattern() throw; kBadPattern for a given pattern with other layers or groups,
// kUsage for one of a model without a pattern. pre: the model has a table.
std::optional<LayerPattern> result_pattern(const CheckpointModel& source, const PatternChoice& choice,
                                           const PipelineOptions& pipeline, Notes& notes);
// The pattern for a result that is made of a model. Nothing if the model is not a hybrid, or if it gets
// neither groups nor pipes. Notes and throws likewise.
std::optional<LayerPattern> result_pattern(const ModelMap& model, const PatternChoice& choice,
                                           const PipelineOptions& pipeline, Notes& notes);

}  // namespace mckpt::impl
