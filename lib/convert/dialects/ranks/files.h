// The files of a Megatron run's ranks, as their folders and the names of their tensors tell: the grid, which
// rank a file is of, its tensors chunk by chunk, and what each chunk has of the model.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/base/name_hash.h"
#include "core/fsdp/grid.h"

namespace mckpt::impl {

class ModelMap;
class Store;
struct ChunkContents;
struct RunSizes;

// The file of one rank. Names point into the store.
struct RankFile {
  using Names = NameMap<std::string_view, i64>;  // with the number of the tensor in the store

  std::string folder;
  std::vector<Names> chunks{};  // of the model: "decoder..." of "mp_rank_00/model1.decoder..."; may be empty
  std::vector<i64> states{}, groups{};  // tensors and objects of an optimizer in the same file
  std::vector<i64> apart{};             // tensors of other files of the rank: of a distributed optimizer
  Cell cell{};
};

struct RankFiles {
  std::vector<RankFile> files;
  Grid grid;  // from what the args say, or else from the numbers in the names of the folders. dp is not known
};

// Throws kUnaccounted if no file has tensors of a model; kUnknownPartition if the grid is not known;
// kShardMissing if a rank has no folder; kContradiction if no run can have the grid, or if a folder belongs
// to no rank.
RankFiles rank_files(const Store& store, const ModelMap& map, const RunSizes& run);

// The contents of each chunk, chunk by chunk, and in each chunk stage by stage. The files of a stage agree,
// or some of them lack parameters. If no file has the final norm, MTP or the output layer, this part counts
// as contents of the last chunk, whose files then lack it. Throws kContradiction if the files have another
// number of chunks than the args say, kBadShards if two chunks have the same one of these parts.
std::vector<ChunkContents> contents_of_chunks(const Store& store, const RankFiles& ranks, const ModelMap& map,
                                              const RunSizes& run);

// The name in the whole model of a tensor that a chunk has: "decoder.layers.5.mlp..." of
// "decoder.layers.2.mlp...", where the layers of the chunk begin with 3.
std::string name_in_model(std::string_view name, const ModelMap& map, i64 first_layer);

// A help that explains modules with such names, which no table has; "" if the modules are not known.
std::string what_modules_are(const std::vector<std::string>& names);

}  // namespace mckpt::impl
