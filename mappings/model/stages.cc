// The chunks in the order of their layers: the first chunk of every stage, then the second of every stage,
// and so on.
#include "mappings/model/stages.h"

#include "core/base/error.h"
#include "mappings/family.h"
#include "mappings/model/fit/fitting_sizes.h"

namespace mckpt::impl {
namespace {

// Throws kGridMisfit unless the chunks of a stage have equally many layers.
i64 layers_of_chunk(i64 layers, i64 chunks, const char* where) {
  if (layers % chunks == 0) return layers / chunks;
  throw Error(Code::kGridMisfit, cat("the layers of ", where, " do not divide by its chunks"))
      .expected(cat("a multiple of ", chunks))
      .found(layers)
      .help("choose another `vpp`");
}

// Names the options by which the stages have different numbers of layers.
std::string help_for_misfit(i64 layers, i64 stages, const PipelineOptions& o) {
  const bool same = !o.first_layers && !o.last_layers && o.chunks == 1 && layers >= stages;
  const i64 first = layers - (stages - 1) * (layers / stages);
  const std::string even = o.first_layers || o.last_layers ? "" : sizes_that_divide("pp", layers);
  return cat(even.empty() ? "choose another `pp`" : even,
             "; or `first_stage_layers` and `last_stage_layers` for stages that differ",
             same ? cat(", such as `first_stage_layers` ", first) : "");
}

void refuse_without_stages(i64 stages, const PipelineOptions& o) {
  if (o.chunks < 1) throw Error(Code::kBadGrid, "`vpp` must be at least 1").found(o.chunks);
  for (const std::optional<i64>& layers : {o.first_layers, o.last_layers})
    if (layers && *layers < 1)
      throw Error(Code::kBadGrid, "the first and the last stage have at least one layer").found(*layers);
  if (stages > 1) return;
  if (o.chunks > 1)
    throw Error(Code::kBadGrid, "one stage alone has one chunk of layers")
        .expected("`vpp` 1, or `pp` 2 or more")
        .found(cat("`vpp` ", o.chunks));
  if (o.first_layers || o.last_layers)
    throw Error(Code::kBadGrid, "one stage alone has all layers")
        .expected("`pp` 2 or more")
        .found(cat("`pp` ", stages, " with the layers of the first or last stage"));
}

}  // namespace

bool has_sections(const StagePart& chunk, Stage stage, bool with_mtp, bool several) {
  switch (stage) {
    case Stage::kFirst:
      return chunk.first;
    case Stage::kFirstAndMtp:
      return chunk.first || (chunk.mtp && with_mtp);
    case Stage::kFinalNorm:
      return chunk.final_norm;
    case Stage::kMtp:
      return chunk.mtp;
    case Stage::kOutput:
      return chunk.output;
    case Stage::kTiedOutput:
      return chunk.output && several;
  }
  return false;
}

PipelineSplit::PipelineSplit(i64 layers, i64 stages, const PipelineOptions& o) : stages_(stages) {
  refuse_without_stages(stages, o);
  i64 ends = (o.first_layers ? 1 : 0) + (o.last_layers ? 1 : 0), middle = stages - ends;
  i64 left = layers - o.first_layers.value_or(0) - o.last_layers.value_or(0);
  if (left < 0 || (middle == 0 ? left != 0 : left % middle != 0))
    throw Error(Code::kGridMisfit, "the layers do not divide by the pipeline-parallel size")
        .expected(middle == 0 ? cat(layers, " layers on the two stages")
                              : cat("a multiple of ", middle, ends > 0 ? " on the other stages" : ""))
        .found(middle == 0 ? layers - left : left)
        .help(help_for_misfit(layers, stages, o));
  const i64 inside = middle == 0 ? 0 : layers_of_chunk(left / middle, o.chunks, "a stage");
  const i64 first = o.first_layers ? layers_of_chunk(*o.first_layers, o.chunks, "the first stage") : inside;
  const i64 last = o.last_layers ? layers_of_chunk(*o.last_layers, o.chunks, "the last stage") : inside;
  for (i64 chunk = 0; chunk < o.chunks; chunk++)
    for (i64 stage = 0; stage < stages; stage++) {
      const bool end = chunk == o.chunks - 1 && stage == stages - 1;
      add({stage == stages - 1 && stages > 1 ? last : stage == 0 ? first : inside, end, end, end});
    }
}

PipelineSplit::PipelineSplit(i64 stages, const std::vector<ChunkContents>& chunks) : stages_(stages) {
  for (const ChunkContents& chunk : chunks) add(chunk);
}

void PipelineSplit::add(const ChunkContents& c) {
  const i64 begin = parts_.empty() ? 0 : layers();
  parts_.push_back({begin, begin + c.layers, parts_.empty(), c.final_norm, c.mtp, c.output});
}

const StagePart& PipelineSplit::part(i64 stage, i64 chunk) const {
  return parts_[static_cast<std::size_t>(chunk * stages_ + stage)];
}

}  // namespace mckpt::impl
