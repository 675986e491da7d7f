// The boxes of ShardedTensors, taken out of a torch file's pickle while it is read. Each file lists the boxes
// of all ranks for every tensor: 1,000 tensors of 256 ranks are 256,000 records of several hundred bytes
// each, but only a few thousand different boxes.
//
//   ShardMetadata(shard_offsets=[24, 0], shard_sizes=[24, 32], placement=...)   ->   a number, of the box 24 0 24 32
#pragma once

#include <map>
#include <vector>

#include "core/base/int.h"
#include "io/pickle/pickle.h"

namespace mckpt::impl {

// A record that it does not take stays in the pickle as it is, and is judged where it is used.
class ShardRows final : public PickleVisitor {
 public:
  using PickleVisitor::build;
  std::optional<u64> build(const PickleObject& object, PickleValue state) override;
  std::optional<u64> part(PickleValue value) override;

  // The box of a ShardMetadata, offsets and then sizes; null for any other value. It lives as long as this.
  const std::vector<i64>* box(PickleValue metadata) const;

 private:
  enum class Kind : u64 { kBox = 1, kNumbers, kOther };
  static constexpr int kKindShift = 48;
  static u64 tagged(Kind kind, u64 number) { return static_cast<u64>(kind) << kKindShift | number; }
  const std::vector<i64>* taken(PickleValue value, Kind kind) const;
  u64 number_of(std::vector<i64> numbers);
  std::optional<std::vector<i64>> numbers(PickleValue value) const;

  std::map<std::vector<i64>, u64> numbers_;
  std::vector<const std::vector<i64>*> by_number_;
};

}  // namespace mckpt::impl
