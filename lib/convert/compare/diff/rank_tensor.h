// One tensor of a live rank beside the same tensor of the model: how their shapes, types, places and
// attributes differ, and which items of the model the rank should have.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "convert/jobs/held_tensors.h"
#include "convert/rank/rank_box.h"
#include "core/items/dtype.h"
#include "io/rank_dump/rank_dump.h"
#include "mappings/model/parameter_marks.h"

namespace mckpt::impl {

// A difference of two texts: of the dump and of the model.
struct RankDifference {
  enum class Kind : u8 { kShape, kDtype, kCast, kAttribute };
  Kind kind;
  std::string at{};
  std::string dump{}, model{}, hint{};
};

struct RankPair {
  const DumpedTensor* dump = nullptr;
  const HeldTensor* model = nullptr;
  std::vector<RankDifference> differences{};
  // The items whose digest the dump should have; nothing: shape or type differ, or they cannot be known, for
  // the reason.
  std::optional<HeldItems> items{};
  std::string reason{};

  std::string dump_text() const;   // "bfloat16 [32, 16]"
  std::string model_text() const;  // the same of the model's side
};

// Attributes as a whole dump has them, which decide what can be compared.
struct RankAttributes {
  bool any = false;                // some tensor has attributes
  bool sequence_parallel = false;  // some tensor is marked so
};

// Shapes, types and places. `fsdp`: the run uses Megatron-FSDP, whose boxes are a part of the question.
RankPair paired(const DumpedTensor& dump, const HeldTensor& model, bool fsdp);
// The attributes. `unset`: counts parameters that are split and do not say along which dimension.
void compare_attributes(RankPair& pair, const ParameterMarks& marks, const RankAttributes& of_dump,
                        bool compares_allreduce, i64& unset);

// The name of a tensor without what wraps its model: "module.module.decoder.x" and "model.module.decoder.x"
// are "decoder.x"; experts that are modules of their own have the names of grouped ones.
std::string bare_name(std::string_view name);

}  // namespace mckpt::impl
