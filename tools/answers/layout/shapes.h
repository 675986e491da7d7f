// The answer of `mckpt layout`: how the parameters of one bucket are packed and cut, as text with a picture
// or as JSON. Packing itself is core/fsdp/flat_buffer.h; a cut inside a row is core/fsdp/row_cuts.h.
#pragma once

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "core/fsdp/flat_buffer.h"
#include "core/fsdp/row_cuts.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"

namespace mckpt::impl {

class Output;

// The request of the command line, and its result. The command fills it; the two writers read it.
struct PackedShapes {
  std::vector<Shape> shapes;
  std::vector<std::string> names{};   // of a model: of the parameters. Else the parameters are numbered
  std::vector<std::string> places{};  // with names: how each of them is placed, in words
  Packing packing;
  DType dtype = DType::kBF16;
  FlatBuffer buffer;         // what the packing makes of the shapes
  std::vector<RowCut> cuts;  // its

  i64 parameter_items() const {
    i64 n = 0;
    for (const PackedParameter& p : buffer.parameters) n += p.items;
    return n;
  }
  i64 last_item() const {
    i64 end = 0;
    for (const PackedParameter& p : buffer.parameters) end = std::max(end, p.end());
    return end;
  }
  bool no_shard() const { return packing.engine == Engine::kV1 && packing.strategy == Strategy::kNoShard; }
};

void write_layout_text(Output& out, const PackedShapes& packed);
// Parts of it: the parameters in the order of their places, all of them or those that `shown` has; the
// picture.
void write_buffer_table(Output& out, const PackedShapes& packed, const std::set<i64>* shown = nullptr);
void write_buffer_picture(Output& out, const PackedShapes& packed);
// Throws kBadLayout if the ranges of all ranks are too many for one answer.
void write_layout_json(Output& out, const PackedShapes& packed);

// Advice in place of a packing that cuts a row.
std::string layout_advice(const PackedShapes& packed);
// The message about a cut: which shards, which row of which parameter.
std::string cut_message(const RowCut& cut, std::string_view parameter);
// Throws kBadLayout for so many ranges of parameters and ranks in one JSON answer; `found` is the number in
// words.
void refuse_too_many_ranges(i64 ranges, std::string_view found);

}  // namespace mckpt::impl
