// Writes pickles of protocol 2, opcode by opcode, as far as checkpoints need them. Classes are named once and
// then taken from the memo, as Python would.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/int.h"
#include "io/pickle_opcodes.h"

namespace mckpt {

class PickleWriter {
 public:
  PickleWriter();

  void op(Op o) { byte(static_cast<u8>(o)); }
  void text(std::string_view utf8);
  void integer(i64 v);
  void boolean(bool v) { op(v ? Op::kNewtrue : Op::kNewfalse); }
  void tuple(std::span<const i64> integers);
  void class_name(std::string_view module, std::string_view name);
  // An empty call: class_name, then class().
  void call_without_arguments() { op(Op::kEmptyTuple), op(Op::kReduce); }

  // Ends the pickle and hands it over.
  std::string finish();

 private:
  void byte(u8 b) { out_ += static_cast<char>(b); }
  void little_endian(u64 v, int bytes);

  std::string out_;
  std::vector<std::string> classes_;  // by their slot of the memo
};

}  // namespace mckpt
