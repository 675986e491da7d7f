// One parameter of a model as one rank holds it: its names, its row of the family's tables, its types and the
// items of its sources.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "mappings/key_split.h"
#include "mappings/row.h"
#include "mappings/rule.h"

namespace mckpt::impl {

struct Section;

enum class UnitClass : u8 { kNone, kTransformerLayer, kMambaLayer };

struct ModelParameter {
  std::string name;         // at run time: layers counted from 0 on the stage, experts on the rank
  std::string global_name;  // the name with the numbers of the whole model
  const Row* row = nullptr;
  const Section* section = nullptr;
  std::array<i32, 6> sources{-1, -1, -1, -1, -1, -1};  // in the source table, in the order of the row's
  std::shared_ptr<const Holding> holding;              // shared by parameters that are alike
  Part part;                                           // which of how many cells has this holding
  i64 expert_number = -1;                              // among all experts; -1: not of an expert
  DType source_dtype = DType::kBF16;
  DType dtype = DType::kBF16;  // at run time
  bool typed_by_run = false;   // the training run chose dtype and rounds to it; else it is the source's
  i64 unit = -1;               // FSDP unit, or -1
  UnitClass unit_class = UnitClass::kNone;
  bool trainable = true;
  KeySplit split = KeySplit::kNone;  // the row's, if the model's activation has it

  bool expert() const { return row->expert(); }
  bool buffer() const { return row->buffer; }
  const Shape& shape() const { return holding->shape.shape; }
};

}  // namespace mckpt::impl
