// Writes pickles of protocol 2, opcode by opcode, as far as checkpoints need them. torch.save writes this
// protocol, and torch's safe loader reads it (not protocol 4 or 5). Classes are named once and then taken
// from the memo, as Python's pickler does:
//
//   writer.class_name("torch", "Size")         c torch\nSize\n q 0       the second time: h 0
//   writer.tuple({6, 4})                       K 6 K 4 \x86
//   writer.op(Op::kTuple1), op(Op::kReduce)    \x85 R                    torch.Size((6, 4))
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/int.h"
#include "io/pickle/opcodes.h"

namespace mckpt::impl {

// A pickle that is being written. The caller keeps the order of opcodes right.
class PickleWriter {
 public:
  PickleWriter();

  // An opcode without argument.
  void op(Op o) { byte(static_cast<u8>(o)); }
  void text(std::string_view utf8);
  // A string of Python 2, bytes in an unknown encoding: the loader decides what it is in Python 3.
  void raw_text(
      std::string_view bytes);  // a string of Python 2; what Python 3 makes of it is up to the loader
  void integer(i64 v);
  void real(double v);
  void boolean(bool v) { op(v ? Op::kNewtrue : Op::kNewfalse); }
  void big_integer(std::span<const u8> twos_complement);  // little-endian
  // Protocol 2 has no bytes, so picklers write a text of Latin-1 and a call that encodes it.
  void bytes(std::span<const u8> data);
  void tuple(std::span<const i64> integers);
  void class_name(std::string_view module, std::string_view name);
  // A value that is a whole pickle of protocol 2. It may have any slots of the memo: no slot that was written
  // before is known behind it.
  void pickled(std::string_view whole);
  // Stores what was written last in the memo; known() takes it from there. Returns the slot.
  u32 memoize();
  void known(u32 slot);
  // A text that occurs often: written in full the first time, then taken from the memo. `slot` is the
  // caller's, kNoSlot at first.
  static constexpr u32 kNoSlot = ~u32{0};
  void repeated_text(std::string_view utf8, u32& slot);
  // An empty call: class_name, then class().
  void call_without_arguments() { op(Op::kEmptyTuple), op(Op::kReduce); }

  // Hands over what was written so far, so that long pickles need not be in memory as a whole.
  std::string take();
  i64 pending_bytes() const { return std::ssize(out_); }
  // Ends the pickle and hands over the rest.
  std::string finish();

 private:
  void byte(u8 b) { out_ += static_cast<char>(b); }
  void little_endian(u64 v, int bytes);
  void counted(Op opcode, std::string_view bytes, std::size_t most);

  std::string out_;
  std::vector<std::pair<std::string, u32>> classes_;  // with their slots of the memo; a few dozen at most
  u32 slots_ = 0;
};

}  // namespace mckpt::impl
