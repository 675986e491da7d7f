// The headers of two sides that meet at names, before any data are read: which tensors are compared, and
// which are missing on one side or differ in type or shape.
#pragma once

#include <set>
#include <vector>

#include "convert/compare/checks/casts.h"
#include "core/base/int.h"

namespace mckpt::impl {

class Comparison;
class Store;
struct Changes;
struct CompareOptions;
struct FusedTables;

// Refers to its arguments. `fused`: the tensors that are stored rank after rank, and the vocabulary, where
// the sides have key tables of one model; else null. `any_type`: types that nobody asked for are cast.
class Headers {
 public:
  Headers(const Store& tested, const Store& source, const FusedTables* fused, const Changes& changes,
          const CompareOptions& options, bool any_type);

  // Reports the tensors that are missing on one side or differ in type or shape, other than in the rows of
  // the vocabulary. Returns their numbers in the tested store.
  std::set<i64> report_unlike(Comparison& comparison);
  // Notes tensors without items, which no chunk has: their types are all that is compared. `apart`: tensors
  // of the tested store that were reported.
  void note_empty(const std::set<i64>& apart, Comparison& comparison) const;

  // The chosen tensors whose types differ as the conversion intends.
  const std::vector<ComparedTypes>& casts() const { return casts_; }

 private:
  bool is_cast_alone(i64 tested, i64 source, Comparison& comparison);

  const Store& tested_;
  const Store& source_;
  const FusedTables* fused_;
  const Changes& changes_;
  bool any_type_, every_;
  std::vector<ComparedTypes> casts_;
};

}  // namespace mckpt::impl
