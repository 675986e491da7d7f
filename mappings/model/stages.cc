// The chunks in the order of their layers: the first chunk of every stage, then the second of every stage,
// and so on. Segments of a pattern have the same order.
#include "mappings/model/stages.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/hybrid/pattern.h"
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

std::vector<ChunkContents> contents_of_segments(const LayerPattern& pattern) {
  std::vector<ChunkContents> out;
  for (const PatternSegment& s : pattern.segments) {
    ChunkContents& chunk = out.emplace_back();
    for (i64 i = s.first_item; i < s.first_item + s.item_count; i++)
      chunk.layers += pattern.items[i].physical_count;
  }
  out.back().final_norm = out.back().mtp = out.back().output = true;
  return out;
}

// pre: the pattern has pipes, and there are several stages.
PipelineSplit split_at_pipes(const LayerPattern& pattern, i64 stages, const PipelineOptions& o) {
  const i64 segments = std::ssize(pattern.segments);
  if (o.first_layers || o.last_layers)
    throw Error(Code::kBadGrid, "the pattern cuts the layers of the stages itself, at |")
        .found(cat("layers of the first or last stage, and the pattern ", escaped(pattern.text)))
        .help("leave out `first_stage_layers` and `last_stage_layers`, or the | in the pattern");
  if (segments % stages != 0)
    throw Error(Code::kGridMisfit, "the segments of the pattern do not divide by the pipeline-parallel size")
        .expected(cat("a multiple of ", stages))
        .found(cat(counted(segments, "segment"), " in ", escaped(pattern.text)))
        .help(sizes_that_divide("pp", segments));
  if (o.chunks > 1 && o.chunks * stages != segments)
    throw Error(Code::kBadGrid, "the pattern cuts the layers of the stages itself, at |")
        .expected(cat("`vpp` ", segments / stages, ": ", segments, " segments on ", stages, " stages"))
        .found(cat("`vpp` ", o.chunks))
        .help("leave it out");
  return PipelineSplit(stages, contents_of_segments(pattern));
}

// pre: the pattern has no pipes.
void refuse_cut_groups(const LayerPattern& pattern, const PipelineSplit& split) {
  for (i64 stage = 0; stage + 1 < split.stages(); stage++) {
    const i64 end = split.part(stage, 0).end_layer;
    for (const PatternItem& item : pattern.items)
      if (item.physical_first < end && end < item.physical_end())
        throw Error(Code::kGridMisfit, "a pipeline stage would end inside a group of layers")
            .expected("stages that end between groups")
            .found(cat("stage ", stage, " ends with layer ", end - 1, ", and the group [",
                       pattern.symbols(item), "] has layers ", item.physical_first, " to ",
                       item.physical_end() - 1))
            .help("cut the pattern at the ends of stages, as in '[*-]|M', or choose `first_stage_layers`");
  }
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

PipelineSplit pipeline_split(i64 layers, i64 stages, const PipelineOptions& o, const LayerPattern* groups) {
  if (groups == nullptr || stages == 1) return PipelineSplit(layers, stages, o);
  if (std::ssize(groups->segments) > 1) return split_at_pipes(*groups, stages, o);
  if (o.chunks > 1)
    throw Error(Code::kBadGrid, "a pattern without | has one chunk of layers on each stage")
        .expected(cat("a pattern with ", o.chunks * stages, " segments, cut at |"))
        .found(cat("`vpp` ", o.chunks, ", and the pattern ", escaped(groups->text)));
  PipelineSplit split(layers, stages, o);
  refuse_cut_groups(*groups, split);
  return split;
}

const StagePart& PipelineSplit::part(i64 stage, i64 chunk) const {
  return parts_[static_cast<std::size_t>(chunk * stages_ + stage)];
}

}  // namespace mckpt::impl
