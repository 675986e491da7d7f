// The answer of `mckpt layout MODEL`: every flat buffer of a model, as a table with a line for each kind of
// layer, or as JSON with every parameter. The buffers belong to one rank;
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convert/dialects/fsdp/run.h"
#include "core/fsdp/grid.h"
#include "mappings/fsdp/model_packing.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/parameter.h"
#include "tools/answers/layout/grid_origin.h"
#include "tools/answers/layout/memory.h"
#include "tools/answers/layout/shapes.h"

namespace mckpt::impl {

// The request of the command line, and its result. The command fills it, the writers read it.
struct ModelLayout {
  std::string path;
  Grid grid;
  std::vector<GridOrigin> grid_from;
  Cell cell;  // of the rank whose buffers are shown
  FsdpSetup fsdp;
  StoredTypes types;
  std::vector<ModelParameter> parameters;
  ModelPacking packing;
  std::optional<i64> group;                  // show this one in detail
  std::optional<std::vector<i64>> chosen{};  // show these parameters in detail
  std::optional<MemoryTable> memory{};       // show the memory of a rank in place of the buffers

  DType stored(const GroupFacts& facts) const {
    bool main = facts.trainable || types.frozen_have_main;
    return main ? types.main_dtype.value_or(facts.dtype) : facts.dtype;
  }
  bool row_aligned() const;
};

// Sums over the buffers. Bytes count the stored weights.
struct LayoutTotals {
  i64 parameters = 0, items = 0, bytes = 0, bucket_items = 0, holes = 0, padding = 0;
  i64 buffers = 0, buffer_items = 0;  // persistent buffers, which every rank has whole
  // The rank of the world that stores least, and the one that stores most: parameters without holes and
  // padding.
  i64 least_bytes = 0, least_rank = 0, most_bytes = 0, most_rank = 0;
  i64 shard_bytes = 0;  // the buffers of one rank, with holes and padding
};
LayoutTotals totals_of(const ModelLayout& layout);

// A bucket as `mckpt layout SHAPE...` shows it, with the names of its parameters.
PackedShapes shapes_of(const ModelLayout& layout, i64 group);
// Why these parameters share a bucket, one reason an entry.
std::vector<std::string> reasons_of(const ModelLayout& layout, i64 group);
// Which ranks share it: "4 data-parallel ranks".
std::string sharers_of(const ModelLayout& layout, i64 group);
// The fault of a group, and what to try: the first cut of each parameter that has one.
std::vector<std::string> cuts_of(const ModelLayout& layout, i64 group);
std::string_view cut_advice();

void write_model_layout(Output& out, const ModelLayout& layout);
// Throws kBadLayout if the ranges of all ranks are too many for one answer.
void write_model_layout_json(Output& out, const ModelLayout& layout);

}  // namespace mckpt::impl
