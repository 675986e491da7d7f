// One parameter of a model as one rank has it: its names, its row of the family's tables, its types and the
// items of its sources.
//
//   name          decoder.layers.0.mlp.linear_fc1.weight     local to the rank
//   global_name   decoder.layers.2.mlp.linear_fc1.weight     the second stage's first layer
//   row           gated_mlp of gate_proj and up_proj
//   sources       tensors 17 and 18 of the table
//   holding       shape [2n, hidden], runs over both sources
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "mappings/key_split.h"
#include "mappings/row.h"
#include "mappings/rule.h"

namespace mckpt::impl {

struct Section;

// The kind of layer that owns a parameter: Megatron-FSDP makes units of classes of modules.
enum class UnitClass : u8 { kNone, kTransformerLayer, kMambaLayer };

// Made by ModelMap::parameters(), in the order in which Megatron registers them; used by everything that
// lays out, converts or lists a rank. Row and section belong to the family and outlive it.
struct ModelParameter {
  std::string name;         // at run time: layers counted from 0 on the stage, experts on the rank
  std::string global_name;  // the name with the numbers of the whole model
  const Row* row = nullptr;
  const Section* section = nullptr;
  i32 sizes = 0;                 // of its layer, as LayerSpec has it
  std::vector<i32> sources{-1};  // in the source table, in the order of the row's, with all parts; -1: none
  std::shared_ptr<const Holding> holding;  // shared by parameters that are alike
  Part part;                               // which of how many cells has this holding
  i64 expert_number = -1;                  // among all experts; -1: not of an expert
  DType source_dtype = DType::kBF16;
  DType dtype = DType::kBF16;  // at run time
  bool typed_by_run = false;   // the training run chose dtype and rounds to it; else it is the source's
  i64 unit = -1;               // FSDP unit, or -1
  UnitClass unit_class = UnitClass::kNone;
  i64 stack = -1;  // the HybridStack around it that can be a unit (model/stacks.h), or -1
  bool trainable = true;
  std::vector<std::string> gathered_with;  // the modules that the row names, at run time; none for kOwnLayer
  // For a model without a table: the parameter whose memory this one has under a second name, or -1; and
  // whether it is a buffer, which every rank has whole.
  i32 tied_to = -1;
  bool whole_buffer = false;
  KeySplit split = KeySplit::kNone;  // the row's, if the model's activation has it

  bool expert() const { return row->expert(); }
  bool buffer() const { return row->buffer || whole_buffer; }
  const Shape& shape() const { return holding->shape.shape; }
};

}  // namespace mckpt::impl
