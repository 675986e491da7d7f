// RankStates::Gathering: the first step of RankStates. Walks over the files of all ranks and collects, for
// every state of every parameter, which ranks have a piece of it and in which row of which file:
//
//   "...linear_fc1.weight", ".exp_avg", tp 0   -->   rank 0: file 0, row 12     rank 2: file 2, row 12     ...
//
// States are collected for each tensor-parallel part of a parameter, because each part has a flat buffer of
// its own.
#pragma once

#include <map>
#include <tuple>

#include "convert/dialects/ranks/states.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {

class ModelMap;
struct Cell;
struct Grid;

// The name that a state has in a checkpoint: "state.x.exp_avg" (a file that contains only the optimizer's
// state dict) and "optimizer.state.x.exp_avg" are the same state. "" for a tensor that is not a state.
std::string whole_state_name(std::string_view name);

// Built file by file with add(), then read. All arguments outlive the object. Not thread-safe.
class RankStates::Gathering {
 public:
  Gathering(const RankStates& states, const ModelMap& map, const RunSetup& setup, const Grid& grid,
            const Adjust& adjust)
      : states_(states), map_(map), setup_(setup), grid_(grid), adjust_(adjust) {}

  // Adds the states in the file of this rank.
  void add(i32 file, i64 rank);
  const std::deque<State>& states() const { return list_; }
  // Throws kUnaccounted if a file contains states of parameters that its rank does not have, or under numbers
  // in place of names.
  void refuse_unknown() const;
  // A warning that names the parameters without states, if there are some; of the parameters that the files
  // of all ranks should have.
  std::optional<Finding> without_states() const;

 private:
  struct CellParameters {
    std::vector<ModelParameter> parameters;
    NameMap<std::string, i32> by_name;
  };
  // The parameters of the cell's ranks; ranks of equal tp, etp and ep share them.
  const CellParameters& of(const Cell& cell);

  const RankStates& states_;
  const ModelMap& map_;
  const RunSetup& setup_;
  const Grid& grid_;
  const Adjust& adjust_;
  std::map<std::tuple<i64, i64, i64>, CellParameters> cells_;
  std::map<std::tuple<std::string, bool, i64>, State*> known_;  // by name and part
  std::deque<State> list_;
  std::vector<std::string> unknown_;
  i64 numbered_ = 0;  // of these, states under numbers
};

}  // namespace mckpt::impl
