// How the layers of a language model are divided among the stages of a pipeline. A stage has one chunk of
// layers, or several that take turns (virtual stages):
//
//   8 layers, 2 stages                        stage 0: 0-3           stage 1: 4-7
//   and 2 chunks a stage                      stage 0: 0-1, 4-5      stage 1: 2-3, 6-7
//   and 2 layers on the first of 2 stages     stage 0: 0-1           stage 1: 2-7
//
// Parameters outside the layers are at the ends: the embedding and a vision tower in the first chunk of all,
// the final norm, MTP and the output layer in the last. A run with a layout of its own may have them
// elsewhere:
//
//   Megatron's layout Et|tt|m|L               stage 0: embedding, 0           stage 1: 1-2, final norm
//                                             stage 2: MTP (and embedding)    stage 3: output layer
//   the pattern [*-]|M[*E] of a hybrid model  stage 0: 0-1                    stage 1: 2-4
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

struct LayerPattern;
enum class Stage : u8;

// One chunk of one stage.
struct StagePart {
  i64 first_layer = 0, end_layer = 0;
  bool first = true;  // of all chunks of the pipeline
  bool final_norm = true, mtp = true, output = true;
};

// Whether the chunk has the sections of such a stage. `with_mtp`: the model has MTP; `several`: the pipeline
// has several stages.
bool has_sections(const StagePart& chunk, Stage stage, bool with_mtp, bool several);

// The contents found in a chunk, beside the embedding. `output`: of a tied model, a copy of the embedding
// under the name of the output layer.
struct ChunkContents {
  i64 layers = 0;
  bool final_norm = false, mtp = false, output = false;
};

// The choices of a run beside the number of stages.
struct PipelineOptions {
  i64 chunks = 1;  // of each stage
  std::optional<i64> first_layers{},
      last_layers{};  // on the first and last stage; none: as many as on the others
  // Of a hybrid model, the pattern that divides its layers; it must outlive this struct. Null: none does.
  const LayerPattern* pattern = nullptr;
};

// The whole division. A value.
class PipelineSplit {
 public:
  // As Megatron divides. Throws kGridMisfit if the layers do not divide, kBadGrid for chunks or layers of the
  // first or last stage without several stages.
  PipelineSplit(i64 layers, i64 stages, const PipelineOptions& options = {});
  // From what each chunk was found to have: chunk by chunk, in each of them stage by stage. pre: not empty,
  // and a multiple of `stages`.
  PipelineSplit(i64 stages, const std::vector<ChunkContents>& chunks);

  i64 stages() const { return stages_; }
  i64 chunks() const { return std::ssize(parts_) / stages_; }
  i64 layers() const { return parts_.back().end_layer; }
  const StagePart& part(i64 stage, i64 chunk) const;

 private:
  void add(const ChunkContents& chunk);

  i64 stages_;
  std::vector<StagePart> parts_;  // in the order of their layers
};

// The division in a run whose layers have a pattern, in the options or else `groups`: at its pipes, or as
// Megatron divides the layers of a pattern without pipes. Null: the run is of another model. One stage alone
// has all layers in any case. Throws kGridMisfit where the pattern does not divide so, or a stage would end
// inside a group, kBadGrid for options that contradict the pattern, and what the constructor throws.
PipelineSplit pipeline_split(i64 layers, i64 stages, const PipelineOptions& options,
                             const LayerPattern* groups = nullptr);

// The pattern that a user gives for a run of these stages; nothing for "". Throws what parse_pattern()
// throws, and kGridMisfit for pipes on one stage, which would be an interleaved pipeline of one stage to
// Megatron.
std::optional<LayerPattern> given_pattern(const std::string& text, i64 stages);

// The pattern that a run of these stages has of a model that another run trained on `before` stages, with
// `pattern` (0: on how many is not known). Layers and groups stay:
//
//   on as many stages                 the pattern as it is
//   on one, or with the layers of     without pipes
//   the first or last stage given
//   with several chunks a stage       a segment for each chunk
//   else, from a pattern with pipes   as many chunks a stage as before, or one where there are too few items
//   else, from one without pipes      without pipes if all stages get equally many layers, or a segment for each
//
// Throws kGridMisfit where there are fewer items than segments.
LayerPattern pattern_on_stages(const LayerPattern& pattern, i64 stages, const PipelineOptions& options,
                               i64 before);

}  // namespace mckpt::impl
