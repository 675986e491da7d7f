// RankHints: where the values of a live rank's tensor are, if they are not those that it should have: on
// another tensor-parallel rank, in the other order of two halves, or in another tensor of the rank.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "convert/compare/diff/rank_tensor.h"

namespace mckpt::impl {

class RankShare;

class RankHints {
 public:
  // `digests`: of the items of those pairs that have some, in their order. All outlive this object.
  RankHints(const RankShare& share, const std::vector<RankPair>& pairs,
            const std::vector<std::string>& digests, int threads);

  // "": nothing was found. Reads the items of the parameter on at most 64 other cells.
  std::string of(const RankPair& pair) const;

 private:
  std::string digest(const ModelParameter& parameter, std::vector<ItemRange> ranges, DType type) const;
  std::string on_other_part(const RankPair& pair) const;
  std::string in_other_order(const RankPair& pair) const;

  const RankShare& share_;
  int threads_;
  std::multimap<std::string, std::string> by_digest_;  // the tensors of the model that have it
};

}  // namespace mckpt::impl
