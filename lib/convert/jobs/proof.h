// The proof of a job, made of its tasks alone before any of them is carried out:
//
//   every item of every tensor of the result    is written once, out of the source or as padding
//   every item of every tensor of the source    is read once, or its tensor is named as not wanted
//
// and the account: what was done with each tensor, counted from the moves. The maker of a job does not pass
// its intentions to the proof, except the tensors that it leaves out and those that repeat another.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class CopyJob;
class DcpLayout;
class KeyTable;
class Store;

// The tensors of one side as its checkpoint has them, by the numbers that the job's source_tensor() or
// target_tensor() gives.
struct ProofSide {
  i64 count = 0;
  std::function<std::string(i64)> name;
  std::function<i64(i64)> items;  // -1: there is no tensor of this number
};
// All outlive the side.
ProofSide side_of(const Store& store);
ProofSide side_of(const DcpLayout& layout);
ProofSide side_of(const KeyTable& keys);

struct ProofInput {
  ProofSide source, target;
  std::vector<i64> dropped{};  // of the source: left out for a reason that was reported
  std::vector<i64> copies{};   // of the source: left out because they repeat another tensor
  std::vector<i64> repeats{};  // of the target: hold the items of another tensor of the target once more
  int threads = 1;
};

// Of tensors. tensors_out = copied + fused + split + repeated + invented.
struct Account {
  i64 tensors_in = 0, tensors_out = 0;
  i64 copied = 0;               // of one tensor of the source, which is in no other
  i64 fused = 0;                // of several
  i64 split = 0;                // of one that is in others as well
  i64 repeated = 0;             // ProofInput::repeats
  i64 invented = 0;             // of none, though it has items
  i64 padded = 0;               // with zeros that no tensor of the source has
  i64 changed = 0;              // of other values or another type
  i64 dropped = 0, copies = 0;  // of the source
};

// Plans every task. Throws kNotTiled that names the tensor and its first item that is written or read twice
// or not at all, kUnproved that names the tensors of which the tasks make something else than was said, and
// what planning a task throws.
Account prove(const CopyJob& job, const ProofInput& input);

}  // namespace mckpt::impl
