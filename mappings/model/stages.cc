// The chunks in the order of their layers: the first chunk of every stage, then the second of every stage,
// and so on. Segments of a pattern have the same order.
#include "mappings/model/stages.h"

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/hybrid/pattern.h"
#include "core/hybrid/pipes.h"
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

// The group in which a stage would end, before the last one; null: none.
const PatternItem* cut_group(const LayerPattern& pattern, const PipelineSplit& split, i64 stage) {
  const i64 end = split.part(stage, 0).end_layer;
  for (const PatternItem& item : pattern.items)
    if (item.physical_first < end && end < item.physical_end()) return &item;
  return nullptr;
}

// Whether the layers of a pattern without pipes divide so, each stage has some, and no group is cut.
bool divides(const LayerPattern& pattern, i64 stages, const PipelineOptions& o) {
  try {
    const PipelineSplit split(pattern.physical_layers(), stages, o);
    for (i64 stage = 0; stage + 1 < stages; stage++)
      if (cut_group(pattern, split, stage)) return false;
    for (i64 stage = 0; stage < stages; stage++)
      if (split.part(stage, 0).first_layer == split.part(stage, 0).end_layer) return false;
    return true;
  } catch (const Error&) {
    return false;
  }
}

// Sizes of pipelines or, where they are of other stages than the first, of first stages; or the pattern with
// pipes.
std::string help_for_pattern(const LayerPattern& pattern, i64 stages, const PipelineOptions& o) {
  std::string out;
  auto add = [&](const std::string& way) {
    if (!way.empty()) out += cat(out.empty() ? "" : "; or ", way);
  };
  if (!o.first_layers && !o.last_layers)
    add(sizes_that_fit("pp", [&](i64 n) { return divides(pattern, n, {}); }));
  if (const std::optional<LayerPattern> cut = with_segments(pattern, stages))
    add(cat("a `hybrid_pattern` with | at the ends of stages, such as '", escaped(cut->text), "'",
            o.first_layers || o.last_layers ? ", without `first_stage_layers` and `last_stage_layers`" : ""));
  add(sizes_that_fit("first_stage_layers", [&](i64 n) {
    PipelineOptions other = o;
    other.first_layers = n;
    return divides(pattern, stages, other);
  }));
  return out;
}

// pre: the pattern has no pipes.
void refuse_cut_groups(const LayerPattern& pattern, const PipelineSplit& split) {
  for (i64 stage = 0; stage + 1 < split.stages(); stage++)
    if (const PatternItem* item = cut_group(pattern, split, stage))
      throw Error(Code::kGridMisfit, "a pipeline stage would end inside a group of layers")
          .expected("stages that end between groups")
          .found(cat("stage ", stage, " ends with layer ", split.part(stage, 0).end_layer - 1,
                     ", and the group [", pattern.symbols(*item), "] has layers ", item->physical_first,
                     " to ", item->physical_end() - 1));
}

// "[*-] with layers 0 to 1": the groups of several layers.
std::string groups_text(const LayerPattern& pattern) {
  std::vector<std::string> groups;
  for (const PatternItem& item : pattern.items)
    if (item.physical_count > 1)
      groups.push_back(cat("[", pattern.symbols(item), "] with layers ", item.physical_first, " to ",
                           item.physical_end() - 1));
  return listed(groups);
}

[[noreturn]] void refuse_segments(const LayerPattern& pattern, i64 stages, i64 chunks) {
  const i64 items = pattern.logical_layers();
  Error e(Code::kGridMisfit, chunks > 1 ? "the pattern has fewer parts than the stages have chunks"
                                        : "the pattern has fewer parts than the pipeline has stages");
  e.expected(cat(stages * chunks, " layers or groups"))
      .found(
          cat(items, items == 1 ? " layer or group in " : " layers and groups in ", escaped(pattern.text)));
  if (std::string groups = groups_text(pattern); !groups.empty())
    e.note(cat("a group is on one stage: ", groups));
  throw e.help(sizes_that_fit("pp", [&](i64 n) { return n == 1 || n * chunks <= items; }));
}

// The segments of the pattern in pattern_on_stages().
i64 segments_on(const LayerPattern& pattern, i64 stages, const PipelineOptions& o, i64 before) {
  const i64 now = std::ssize(pattern.segments), items = pattern.logical_layers();
  if (o.first_layers || o.last_layers) return 1;
  if (o.chunks > 1) return stages * o.chunks;
  if (stages == 1) return 1;
  if (now == 1) return divides(pattern, stages, {}) ? 1 : stages;
  if (before <= 1 || before == stages) return now % stages == 0 ? now : stages;
  const i64 chunks = now % before == 0 ? now / before : 1;
  return stages * chunks <= items ? stages * chunks : stages;
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
  if (o.pattern != nullptr) groups = o.pattern;
  if (groups == nullptr || stages == 1) return PipelineSplit(layers, stages, o);
  if (std::ssize(groups->segments) > 1) return split_at_pipes(*groups, stages, o);
  if (o.chunks > 1)
    throw Error(Code::kBadGrid, "a pattern without | has one chunk of layers on each stage")
        .expected(cat("a pattern with ", o.chunks * stages, " segments, cut at |"))
        .found(cat("`vpp` ", o.chunks, ", and the pattern ", escaped(groups->text)));
  try {
    const PipelineSplit split(layers, stages, o);
    refuse_cut_groups(*groups, split);
    return split;
  } catch (Error& e) {
    // Without a way that fits, the help that the error has may still say one.
    if (e.code() == Code::kGridMisfit)
      if (const std::string ways = help_for_pattern(*groups, stages, o); !ways.empty()) e.help(ways);
    throw;
  }
}

std::optional<LayerPattern> given_pattern(const std::string& text, i64 stages) {
  if (text.empty()) return std::nullopt;
  LayerPattern out = parse_pattern(text, Dialect::kGrouped);
  if (stages > 1 || std::ssize(out.segments) == 1) return out;
  throw Error(Code::kGridMisfit,
              "the pattern has | at the ends of stages, and Megatron refuses them in a run of one stage")
      .expected(cat(escaped(without_pipes(out).text), ", or a pipeline of several stages"))
      .found(escaped(text))
      .help("leave the | out");
}

LayerPattern pattern_on_stages(const LayerPattern& pattern, i64 stages, const PipelineOptions& o,
                               i64 before) {
  const i64 segments = segments_on(pattern, stages, o, before);
  std::optional<LayerPattern> out = with_segments(pattern, segments);
  if (!out) refuse_segments(pattern, stages, segments / stages);
  return *std::move(out);
}

const StagePart& PipelineSplit::part(i64 stage, i64 chunk) const {
  return parts_[static_cast<std::size_t>(chunk * stages_ + stage)];
}

}  // namespace mckpt::impl
