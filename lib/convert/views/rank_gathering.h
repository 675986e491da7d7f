// What the files of all ranks hold, state by state: which parameter each is of, and who has a piece of it.
#pragma once

#include <map>
#include <tuple>

#include "convert/views/rank_states.h"
#include "mappings/model/parameter.h"

namespace mckpt::impl {

class ModelMap;
struct Cell;
struct Grid;

// The name of a state in a checkpoint; "" for a tensor that is not a state. A file may hold the
// optimizer's state dict alone.
std::string whole_state_name(std::string_view name);

class RankStates::Gathering {
 public:
  Gathering(const RankStates& states, const ModelMap& map, const RunSetup& setup, const Grid& grid,
            const Adjust& adjust)
      : states_(states), map_(map), setup_(setup), grid_(grid), adjust_(adjust) {}

  void add(i32 file, i64 rank);
  const std::deque<State>& states() const { return list_; }
  // Throws where files have states that none of their ranks' parameters has.
  void refuse_unknown() const;

 private:
  struct CellParameters {
    std::vector<ModelParameter> parameters;
    NameMap<std::string, i32> by_name;
  };
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
};

}  // namespace mckpt::impl
