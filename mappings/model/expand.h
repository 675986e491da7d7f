// A model with all its parameters: each one is paired with the Hugging Face tensors it comes from, all
// tensors and parameters are accounted for, and the parameters of any rank of a grid can be listed.
//
//   config + family + tensor names  --ModelMap-->  every tensor read, every parameter supplied, or refused
//   ModelMap + grid + cell          --parameters-->  what that rank holds at run time,
//                                                    as Megatron registers it
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/fsdp/grid.h"
#include "core/hybrid/pattern.h"
#include "mappings/model/source_table.h"
#include "mappings/model/walk.h"

namespace mckpt::impl {

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

// A tensor that no parameter reads because it is a copy of tensor `of`, or for another reason (`of` is -1).
struct UnreadTensor {
  i32 tensor = -1, of = -1;
  std::string_view reason;
};

struct MapOptions {
  std::optional<Needs> expert_form;  // how the experts are stored, if the user says it
};

// How a training run sets a model up.
struct RunSetup {
  i64 vocab_rows = 0;  // with padding; 0: no padding
  // The data type of all parameters; persistent buffers are then fp32. None: each keeps its source's type.
  std::optional<DType> params_dtype;
  // The pattern of a hybrid model with groups; it must outlive this struct. Null: no groups.
  const LayerPattern* groups = nullptr;
};

class ModelMap {
 public:
  // Pairs and accounts. Throws kUnaccounted with all that does not match, kQuantized, kAmbiguousLayout.
  ModelMap(ModelConfig model, const Family& family, SourceTable tensors, const MapOptions& options = {});
  // The model without tensors: the sources are those that the tables promise.
  static ModelMap promised(ModelConfig model, const Family& family, const MapOptions& options = {});

  const ModelConfig& model() const { return model_; }
  const Family& family() const { return *family_; }
  const SourceTable& sources() const { return sources_; }
  const std::vector<UnreadTensor>& unread() const { return unread_; }
  // By tensor of sources(), whether no parameter is made of it and it repeats no other tensor: an export does
  // not write it.
  std::vector<bool> dropped() const;
  // The shapes of sources(), as the tables promise them; that of a scalar if no parameter reads the tensor
  // and it is not a copy.
  std::vector<Shape> source_shapes() const;
  // Notes for a person about what was inferred.
  const std::vector<std::string>& notes() const { return notes_; }
  i64 parameter_count() const { return parameter_count_; }  // of the whole model, buffers included

  // The part of a parameter that another cell holds. Throws kGridMisfit, and what rules throw.
  Holding holding(const ModelParameter& parameter, Part part, const RunSetup& setup) const;
  // The parameters that one rank holds, in order of registration. Throws kGridMisfit with every kind of
  // parameter that does not divide. pre: the grid passed check_grid().
  std::vector<ModelParameter> parameters(const Grid& grid, const Cell& cell, const RunSetup& setup) const;

 private:
  struct Promised {};
  ModelMap(ModelConfig model, const Family& family, SourceTable tensors, const MapOptions& options, Promised);

  Needs form_of(const Section& section) const;

  ModelConfig model_;
  const Family* family_;  // outlives this
  SourceTable sources_;
  std::vector<UnreadTensor> unread_;
  std::vector<std::string> notes_;
  std::vector<Needs> forms_;  // how the experts are stored, by section
  i64 parameter_count_ = 0;
};

// The rows of the vocabulary over this number of cells. Throws kVocabulary if they do not divide.
struct VocabChoice {
  enum Kind : u8 { kKeep, kAuto, kRows } kind = kKeep;
  i64 rows = 0;
};
i64 vocab_rows(const ModelConfig& model, const Family& family, i64 cells, VocabChoice choice);

}  // namespace mckpt::impl
