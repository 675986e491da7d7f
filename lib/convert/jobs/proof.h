// The proof of a job, made from the plans of its tasks alone before any of them is carried out:
//
//   every item of every tensor of the result    is written once, from the source or as padding
//   every item of every tensor of the source    is read once, or its tensor is named as not wanted
//
// The proof is independent of the planner: the planner passes it no intentions, except the tensors that it
// leaves out and those that repeat another. A fault in a table, a rule or an index is found here, before the
// first byte is written.
//
// The account is counted on the way: what was done with each tensor.
//
//   source  q, k, v, o, tied          result  qkv, o         in 5, out 2: 1 fused, 1 copied; 1 copy left out ("tied")
//
// It costs as much as planning every task once, without reading headers of records, and some 16 bytes for
// each chunk of either side.
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
struct TensorAccount;

// The tensors of one side as its checkpoint declares them, under the numbers that the job's source_tensor()
// or target_tensor() returns. This is what the moves are compared with.
struct ProofSide {
  i64 count = 0;
  std::function<std::string(i64)> name;
  std::function<i64(i64)> items;  // -1: there is no tensor of this number
};
// pre, for all three: the argument outlives the side.
ProofSide side_of(const Store& store);
ProofSide side_of(const DcpLayout& layout);
ProofSide side_of(const KeyTable& keys);

// The values that the proof compares the moves with, and the exceptions that the planner names.
struct ProofInput {
  ProofSide source, target;
  std::vector<i64> dropped{};   // of the source: left out for a reason that was reported
  std::vector<i64> copies{};    // of the source: left out because they repeat another tensor
  std::vector<i64> tied{};      // of the target: have the items of another tensor of the target a second time
  std::vector<i64> padding{};   // of the target: a part of a tensor that has nothing but padding
  std::vector<i64> constant{};  // of the target: made of none, because a rule gives all of its values
  // Tensors of the source, if it is a view: its values are computed of codes and scales, or it is codes or
  // scales of values.
  std::vector<i64> dequantized{}, quantized{};
  // Tensors of the source, if it is a view of a base with an adapter in it
  std::vector<i64> adapted{};
  int threads = 1;
  std::function<bool()> stop{};  // asked before each task, by all threads: true ends the proof; may be empty

  // For reports, each may be empty. The name of the rule that makes a tensor of the target of one of the
  // source, "" if no rule does; why a tensor of the source is left out, and the tensor that it repeats (-1:
  // none).
  std::function<std::string_view(i64 target, i64 source)> rule{};
  struct LeftOut {
    std::string_view reason;
    i64 copy_of = -1;
  };
  std::function<LeftOut(i64 source)> left_out{};
};

// Numbers of tensors. tensors_out = copied + fused + split + dequantized + quantized + tied + invented; the
// tensors of the result among `padded` and `changed`, and the tensors of the source among `unpadded`, are
// counted there a second time.
struct Account {
  i64 tensors_in = 0, tensors_out = 0;
  i64 copied = 0;       // made of one tensor of the source, which is used for no other, as it is
  i64 fused = 0;        // made of several
  i64 split = 0;        // made of one that is used for others as well; ProofInput::padding
  i64 dequantized = 0;  // values of one tensor of the source, which has codes and scales in its files
  i64 quantized = 0;    // codes or scales of one tensor of the source
  i64 tied = 0;         // ProofInput::tied
  i64 invented = 0;     // made of none, though the tensor has items: ProofInput::constant, or it is refused
  i64 padded = 0;       // has zeros that no tensor of the source has
  i64 unpadded = 0;     // tensors of the source with padding that is not in the result
  i64 changed = 0;      // has other values or another type than its source
  i64 dropped = 0, copies = 0;  // tensors of the source, as ProofInput names them
};

// Plans every task with input.threads threads. Throws kNotTiled with the tensor and its first item that is
// written or read twice or not at all; kUnproved with the tensors of which the tasks make something else than
// was declared; kInterrupted; and what planning a task throws. `tensors`: also filled, unless it is null.
Account prove(const CopyJob& job, const ProofInput& input, TensorAccount* tensors = nullptr);

}  // namespace mckpt::impl
