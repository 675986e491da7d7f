// Finds the pattern of the source, which the names, the args or the config give, and puts the pipes of the
// result into it.
#include "convert/plan/result_pattern.h"

#include "convert/facts/pattern_args.h"
#include "convert/layers/model_layers.h"
#include "convert/open/checkpoint.h"
#include "core/base/error.h"
#include "core/base/notes.h"
#include "core/hybrid/pipes.h"
#include "io/dcp/dcp.h"
#include "io/dcp/keys/dialect.h"
#include "io/store/store.h"
#include "mappings/model/expand.h"
#include "mappings/model/grouped_names.h"
#include "mappings/model/stages.h"

namespace mckpt::impl {
namespace {

bool is_one_segment(const LayerPattern& p) { return std::ssize(p.segments) == 1; }

// The pattern of the run that wrote the source, with its groups, by the args or by the names. Nothing if
// neither has one.
std::optional<LayerPattern> pattern_on_disk(const CheckpointModel& source) {
  if (const LayerPattern* named = source.setup().groups) return *named;
  const Store& disk = source.on_disk();
  std::optional<LayerPattern> said = pattern_of_run(disk);
  if (said || dcp_dialect(disk) != DcpDialect::kFsdpDtensor) return said;
  const auto named = pattern_of_groups(disk, DcpDialect::kFsdpDtensor, source.map());
  return named ? std::optional(*named) : std::nullopt;
}

// Without groups where the names have none, whatever the args say. `said`: the pattern on disk.
std::optional<LayerPattern> pattern_of_source(const CheckpointModel& source,
                                              const std::optional<LayerPattern>& said, bool groups) {
  if (const LayerPattern* named = source.setup().groups) return groups ? *named : without_groups(*named);
  const std::string own = hybrid_pattern(source.map().model());
  if (own.empty()) return std::nullopt;
  const LayerPattern flat = parse_pattern(own, Dialect::kGrouped);
  if (!said) return flat;
  const LayerPattern named = without_groups(*said);
  return same_but_pipes(named, flat) ? named : flat;
}

void refuse_unlike_source(const LayerPattern& given, const LayerPattern& source) {
  if (same_but_pipes(given, source)) return;
  throw Error(Code::kBadPattern, "the pattern has other layers or groups than the source, which keep theirs")
      .expected(cat(escaped(without_pipes(source).text), ", with | at the ends of stages"))
      .found(escaped(given.text))
      .help("`mckpt convert group` gives the layers other groups, `mckpt convert ungroup` none");
}

// `said`: the pattern on disk.
[[noreturn]] void refuse_pattern_of_gpt(const Store& source, const std::optional<LayerPattern>& said) {
  throw Error(Code::kUsage, cat("`hybrid_pattern` is for hybrid models, and ",
                                said ? cat("the layers of the pattern ", escaped(said->text),
                                           " get the names of a GPT model")
                                     : "no pattern describes this one"))
      .file(source.root())
      .help("leave it out");
}

// One error for both, where one stage has no pipes either.
void refuse_groups(const LayerPattern& given, i64 stages) {
  if (!given.has_groups()) return;
  const LayerPattern flat = without_groups(given);
  const bool piped = stages == 1 && !is_one_segment(flat);
  throw Error(Code::kBadPattern, cat("files of ranks have layers without groups",
                                     piped ? ", and a run of one stage has no | in its pattern" : ""))
      .expected(escaped(piped ? without_pipes(flat).text : flat.text))
      .found(escaped(given.text))
      .help(piped ? "leave [, ] and | out" : "leave [ and ] out");
}

std::optional<LayerPattern> chosen_pattern(const PatternChoice& choice) {
  if (!choice.groups && !choice.given.empty())
    refuse_groups(parse_pattern(choice.given, Dialect::kGrouped), choice.stages);
  return given_pattern(choice.given, choice.stages);
}

// `before`: the stages of the source; 0: it has none, or they are not known.
std::optional<LayerPattern> placed(const LayerPattern& source, const PatternChoice& choice,
                                   const PipelineOptions& pipeline, i64 before, Notes& notes) {
  LayerPattern out = pattern_on_stages(source, choice.stages, pipeline, before);
  if (!out.has_groups() && is_one_segment(out) && is_one_segment(source)) return std::nullopt;
  if (out.text != source.text)
    notes.note(cat("stages  of the pattern ", source.text, " become those of ", out.text));
  return out;
}

}  // namespace

std::optional<LayerPattern> result_pattern(const CheckpointModel& source, const PatternChoice& choice,
                                           const PipelineOptions& pipeline, Notes& notes) {
  const std::optional<LayerPattern> said = pattern_on_disk(source);
  const std::optional<LayerPattern> before = pattern_of_source(source, said, choice.groups);
  if (!before) {
    if (!choice.given.empty()) refuse_pattern_of_gpt(source.on_disk(), said);
    if (said)
      notes.note(cat(
          "layers  of the hybrid model ", said->text,
          " get the names that the GPT model has for them; in torch_dist and fsdp_dtensor `mckpt convert gpt-to-hybrid` gives them back"));
    return std::nullopt;
  }
  if (std::optional<LayerPattern> given = chosen_pattern(choice)) {
    refuse_unlike_source(*given, *before);
    return given;
  }
  if (!choice.groups && said && said->has_groups())
    notes.note(cat("groups  of the pattern ", said->text,
                   " are removed, as files of ranks have none: ", before->text));
  return placed(*before, choice, pipeline, source.run().pipeline_stages.value_or(0), notes);
}

std::optional<LayerPattern> result_pattern(const ModelMap& model, const PatternChoice& choice,
                                           const PipelineOptions& pipeline, Notes& notes) {
  if (std::optional<LayerPattern> given = chosen_pattern(choice)) {
    refuse_other_pattern(*given, model.model());
    return given;
  }
  const std::string own = hybrid_pattern(model.model());
  if (own.empty()) return std::nullopt;
  return placed(parse_pattern(own, Dialect::kGrouped), choice, pipeline, 0, notes);
}

}  // namespace mckpt::impl
