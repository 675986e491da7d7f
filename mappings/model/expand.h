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

#include "core/base/int.h"
#include "mappings/config.h"
#include "mappings/model/source_table.h"

namespace mckpt::impl {

enum class Needs;
class Shape;
struct Cell;
struct Family;
struct Grid;
struct Holding;
struct ModelParameter;
struct Part;
struct RunSetup;
struct Section;
struct StagePart;

// A tensor that no parameter reads because it is a copy of tensor `of`, or for another reason (`of` is -1).
struct UnreadTensor {
  i32 tensor = -1, of = -1;
  std::string_view reason;
};

struct MapOptions {
  std::optional<Needs> expert_form;  // how the experts are stored, if the user says it
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
  // The shapes of sources(), as the tables promise them; a scalar's shape if no parameter reads the tensor
  // and it is not a copy.
  std::vector<Shape> source_shapes() const;
  // Notes for a person about what was inferred.
  const std::vector<std::string>& notes() const { return notes_; }
  i64 parameter_count() const { return parameter_count_; }  // of the whole model, buffers included

  // The part of a parameter that another cell holds. Throws kGridMisfit, and what rules throw.
  Holding holding(const ModelParameter& parameter, Part part, const RunSetup& setup) const;
  // The parameters that one rank holds, in order of registration. Throws kGridMisfit with every kind of
  // parameter that does not divide, whatever stage has it. pre: the grid passed check_grid().
  std::vector<ModelParameter> parameters(const Grid& grid, const Cell& cell, const RunSetup& setup) const;
  // The parameters of one chunk of the rank's stage, where the stages do not have equally many layers, or
  // several chunks.
  std::vector<ModelParameter> parameters(const Grid& grid, const Cell& cell, const RunSetup& setup,
                                         const StagePart& chunk) const;

 private:
  struct Promised {};
  ModelMap(ModelConfig model, const Family& family, SourceTable tensors, const MapOptions& options, Promised);

  Needs form_of(const Section& section) const;
  bool divides_over(i64 cells, bool experts) const;
  // Help for a model that does not divide: sizes that fit, of `tp` or `etp` that do not.
  std::string fitting_parts(i64 tp, i64 etp) const;

  ModelConfig model_;
  const Family* family_;  // outlives this
  SourceTable sources_;
  std::vector<UnreadTensor> unread_;
  std::vector<std::string> notes_;
  std::vector<Needs> forms_;  // how the experts are stored, by section
  i64 parameter_count_ = 0;
};

}  // namespace mckpt::impl
