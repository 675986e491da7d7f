#include "io/pickle_writer.h"

#include <algorithm>

namespace mckpt {

PickleWriter::PickleWriter() { op(Op::kProto), byte(2); }

void PickleWriter::little_endian(u64 v, int bytes) {
  for (int i = 0; i < bytes; i++) byte(static_cast<u8>(v >> 8 * i));
}

void PickleWriter::text(std::string_view utf8) {
  if (utf8.size() > UINT32_MAX)
    throw Error(Code::kPickleLimit, "a text is too long for a pickle").found(utf8.size());
  op(Op::kBinunicode);
  little_endian(utf8.size(), 4);
  out_ += utf8;
}

void PickleWriter::integer(i64 v) {
  if (v >= 0 && v < 256) {
    op(Op::kBinint1), byte(static_cast<u8>(v));
  } else if (v >= INT32_MIN && v <= INT32_MAX) {
    op(Op::kBinint), little_endian(static_cast<u32>(v), 4);
  } else {
    op(Op::kLong1), byte(8), little_endian(static_cast<u64>(v), 8);
  }
}

void PickleWriter::tuple(std::span<const i64> integers) {
  op(Op::kMark);
  for (i64 v : integers) integer(v);
  op(Op::kTuple);
}

void PickleWriter::class_name(std::string_view module, std::string_view name) {
  std::string line = cat(module, "\n", name, "\n");
  auto known = std::find(classes_.begin(), classes_.end(), line);
  u64 slot = static_cast<u64>(known - classes_.begin());
  if (known != classes_.end()) return op(Op::kLongBinget), little_endian(slot, 4);
  op(Op::kGlobal), out_ += line;
  op(Op::kLongBinput), little_endian(slot, 4);
  classes_.push_back(std::move(line));  // a few dozen at most, so a list will do
}

std::string PickleWriter::finish() {
  op(Op::kStop);
  return std::move(out_);
}

}  // namespace mckpt
