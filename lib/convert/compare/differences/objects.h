// Objects of two checkpoints besides tensors, compared value by value: the args, the iteration, settings of
// the optimizer, random states.
//
//   args .lr           expected 0.0003, found 0.0001      a finding
//   args .world_size   expected 4, found 8                listed in of_grid: every conversion writes its own
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "convert/facts/run_facts.h"
#include "io/verify/verify.h"

namespace mckpt::impl {

class CheckpointModel;

// The outcome: findings, and the differences that are not findings because a conversion makes them.
struct ObjectDifferences {
  i64 objects = 0;  // objects of which everything was compared
  i64 unread = 0;   // objects that could not be compared, each with a finding or in left_out
  std::vector<Finding> findings;
  std::vector<Difference> differences;  // the values that the findings report
  // Fields of the args that describe the grid of a run, and differ: every conversion writes its own.
  std::vector<std::string> of_grid;
  // True if the iteration differs and is the number of the tested side's folder: the result was written as
  // that one. In a list of differences each side has the number of its folder.
  bool renumbered = false;
  // Objects that only one side has, because a change of format makes them.
  std::vector<std::string> made;
  std::map<std::string, std::vector<std::string>>
      left_out;  // by reason: objects that only the source has, or that have no known value
};

// The end of a finding about an object that cannot be read, of the side that is not the tested one.
std::string of_side(std::string_view path);

// One side: the facts of its run, each under the name of its object. The things that it refers to outlive it.
struct ObjectSide {
  // Each object of the store is a fact.
  ObjectSide(const Store& of) : store(of), facts(facts_of_objects(of)) {}
  ObjectSide(const CheckpointModel& of);

  // Whether the checkpoint has objects, none of which is a fact under the names by which it is compared.
  bool leaves_objects() const;

  const Store& store;
  RunFacts facts;
  bool translated = false;  // a change of format made the names
};

// Compares the objects of `there` with those that a conversion of `source` would write. Each object is
// compared by one of `threads` threads; equal bytes are not parsed. `left_out` says why the conversion leaves
// an object out, "" if it does not; an empty function: it leaves none out. `apart`: objects of either side
// that the caller compares; an empty function: none. `every`: differences
// are listed without a limit of their number.
ObjectDifferences object_differences(const ObjectSide& there, const ObjectSide& source,
                                     const std::function<std::string(std::string_view)>& left_out,
                                     const std::function<bool(std::string_view)>& apart, bool every,
                                     int threads);

}  // namespace mckpt::impl
