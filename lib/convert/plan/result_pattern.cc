// Finds the pattern of the source, which the names, the args or the config give, and puts the pipes of the
// result into it.
#include "convert/plan/result_pattern.h"

#include "convert/facts/pattern_args.h"
#include "convert/open/checkpoint.h"
#include "core/base/error.h"
#include "core/base/notes.h"
#include "core/hybrid/pipes.h"
#include "hf/model.h"
#include "io/store/store.h"
#include "mappings/model/expand.h"
#include "mappings/model/grouped_names.h"
#include "mappings/model/stages.h"

namespace mckpt::impl {
namespace {

bool is_one_segment(const LayerPattern& p) { return std::ssize(p.segments) == 1; }

// Without groups where the names have none, whatever the args say.
std::optional<LayerPattern> pattern_of_source(const CheckpointModel& source, bool groups) {
  if (const LayerPattern* named = source.setup().groups) return groups ? *named : without_groups(*named);
  const std::string own = source.model().plain ? "" : hybrid_pattern(source.map().model());
  if (own.empty()) return std::nullopt;
  const LayerPattern flat = parse_pattern(own, Dialect::kGrouped);
  const std::optional<LayerPattern> said = pattern_of_run(source.on_disk());
  if (!said) return flat;
  const LayerPattern named = without_groups(*said);
  return same_but_pipes(named, flat) ? named : flat;
}

LayerPattern given_pattern(const LayerPattern& source, const std::string& given) {
  LayerPattern out = parse_pattern(given, Dialect::kGrouped);
  if (same_but_pipes(out, source)) return out;
  throw Error(Code::kBadPattern, "the pattern has other layers or groups than the source, which keep theirs")
      .expected(cat(escaped(without_pipes(source).text), ", with | at the ends of stages"))
      .found(escaped(given))
      .help("`mckpt convert group` gives the layers other groups, `mckpt convert ungroup` none");
}

}  // namespace

std::optional<LayerPattern> result_pattern(const CheckpointModel& source, const PatternChoice& choice,
                                           const PipelineOptions& pipeline, Notes& notes) {
  const std::optional<LayerPattern> before = pattern_of_source(source, choice.groups);
  if (!before) {
    if (choice.given.empty()) return std::nullopt;
    throw Error(Code::kUsage, "`hybrid_pattern` is for hybrid models, and no pattern describes this one")
        .file(source.on_disk().root())
        .help("leave it out");
  }
  if (!choice.given.empty()) return given_pattern(*before, choice.given);
  const i64 stages = source.run().pipeline_stages.value_or(0);
  LayerPattern out = pattern_on_stages(*before, choice.stages, pipeline, stages);
  if (!out.has_groups() && is_one_segment(out) && is_one_segment(*before)) return std::nullopt;
  if (out.text != before->text)
    notes.note(cat("stages  of the pattern ", before->text, " become those of ", out.text));
  return out;
}

std::optional<LayerPattern> result_pattern(const ModelMap& model, const PatternChoice& choice,
                                           const PipelineOptions& pipeline) {
  if (!choice.given.empty()) {
    LayerPattern given = parse_pattern(choice.given, Dialect::kGrouped);
    refuse_other_pattern(given, model.model());
    return given;
  }
  const std::string own = pipeline.chunks > 1 ? hybrid_pattern(model.model()) : "";
  if (own.empty()) return std::nullopt;
  return pattern_on_stages(parse_pattern(own, Dialect::kGrouped), choice.stages, pipeline, 0);
}

}  // namespace mckpt::impl
