// The table of Megatron's rank files: a parameter of the model <-> the file, section and name in which a rank
// has it, and the box that it has. The plan of the files and the view of them walk it cell by cell:
//
//   mp_rank_01_000   tp 1, stage 0      model    decoder.layers.0.mlp.linear_fc1.weight [2n, h]
//                                                ..._w rows n to 2n-1, ..._v rows n to 2n-1
//
// Layers are counted from 0 on each chunk of a stage, experts from 0 on the rank. The stage of the output
// layer of a tied model has the embedding once more. The boxes are those that Megatron-FSDP saves of such a
// parameter without sharding it (mappings/fsdp/layout).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "mappings/fsdp/layout.h"
#include "mappings/model/run_setup.h"
#include "mappings/model/stages.h"

namespace mckpt::impl {

class ModelMap;

// The sections of a rank's file that have its model: "model", or "model0", "model1", ... for several chunks
// of layers; and the number of the chunk that such a section has, 0 of "model", nothing of another word.
std::string model_section(i64 chunk, i64 chunks);
std::optional<std::size_t> chunk_of_section(std::string_view section);

// All names that a file may have for a parameter, and the one that a run of that spelling gives it.
std::vector<std::string> names_in_files(const ModelParameter& p);
std::string name_in_file(const ModelParameter& p, const Spelling& spelling);

// The part of one key of fsdp_dtensor in a rank's tensor of a parameter: rows of the tensor, and their box.
struct RankRow {
  FsdpTensor box;
  Piece piece;
};
std::vector<RankRow> rank_rows(const std::vector<ModelParameter>& parameters, i32 index,
                               const ModelConfig& model);

// The parameters of the ranks of one run. The map outlives this.
class RankTable {
 public:
  RankTable(const ModelMap& map, const RunSetup& setup, const Grid& grid, PipelineSplit split);

  i64 chunks() const { return split_.chunks(); }
  // The parameters of a chunk of the cell's rank. Their global names are the names of parameters that one
  // rank alone has.
  std::vector<ModelParameter> parameters(const Cell& cell, i64 chunk) const;
  // Where a tied model has MTP and the output layer in one chunk, Megatron takes the embedding that MTP has
  // there for the output, and the weight of the output layer keeps what it began with.
  bool idle(const ModelParameter& p, const Cell& cell, i64 chunk) const;

 private:
  const ModelMap& map_;
  const RunSetup setup_;
  const Grid grid_;
  const PipelineSplit split_;
  NameSet<std::string> whole_;            // the parameters that one rank alone has
  std::map<i32, std::string> by_source_;  // of them, the first that has this tensor first
};

}  // namespace mckpt::impl
