// Writes the opcodes of protocol 2. Numbers are little-endian, floats big-endian; integers take the
// shortest opcode that holds them.
#include "io/pickle/write/writer.h"
#include "core/base/error.h"

#include <bit>
#include <utility>

namespace mckpt::impl {

PickleWriter::PickleWriter() { op(Op::kProto), byte(2); }

void PickleWriter::little_endian(u64 v, int bytes) {
  for (int i = 0; i < bytes; i++) byte(static_cast<u8>(v >> 8 * i));
}

void PickleWriter::text(std::string_view utf8) { counted(Op::kBinunicode, utf8, UINT32_MAX); }

void PickleWriter::raw_text(std::string_view bytes) { counted(Op::kBinstring, bytes, INT32_MAX); }

// Opcode, length in 4 bytes, bytes. Throws kPickleLimit for a text that is too long for its opcode.
void PickleWriter::counted(Op opcode, std::string_view bytes, std::size_t most) {
  if (bytes.size() > most)
    throw Error(Code::kPickleLimit, "a text is too long for a pickle").found(bytes.size());
  op(opcode);
  little_endian(bytes.size(), 4);
  out_ += bytes;
}

// Between two bytes of header and the stop are the opcodes of the value.
void PickleWriter::pickled(std::string_view whole) {
  out_ += whole.substr(2, whole.size() - 3);
  classes_.clear();
}

// Above 31 bits, as offsets of large files are, protocol 2 needs LONG1.
void PickleWriter::integer(i64 v) {
  if (v >= 0 && v < 256) {
    op(Op::kBinint1), byte(static_cast<u8>(v));
  } else if (v >= INT32_MIN && v <= INT32_MAX) {
    op(Op::kBinint), little_endian(static_cast<u32>(v), 4);
  } else {
    op(Op::kLong1), byte(8), little_endian(static_cast<u64>(v), 8);
  }
}

void PickleWriter::real(double v) {
  op(Op::kBinfloat);
  u64 bits = std::bit_cast<u64>(v);
  for (int i = 7; i >= 0; i--) byte(static_cast<u8>(bits >> 8 * i));
}

void PickleWriter::big_integer(std::span<const u8> twos_complement) {
  bool little = twos_complement.size() < 256;
  op(little ? Op::kLong1 : Op::kLong4);
  little_endian(twos_complement.size(), little ? 1 : 4);
  for (u8 b : twos_complement) byte(b);
}

void PickleWriter::bytes(std::span<const u8> data) {
  std::string latin;
  for (u8 b : data) {
    if (b >= 0x80) latin += static_cast<char>(0xc0 | b >> 6);
    latin += static_cast<char>(b < 0x80 ? b : 0x80 | (b & 0x3f));
  }
  class_name("_codecs", "encode");
  text(latin), text("latin1");
  op(Op::kTuple2), op(Op::kReduce);
}

// Up to three items have opcodes of their own, which need no mark.
void PickleWriter::tuple(std::span<const i64> integers) {
  if (integers.empty()) return op(Op::kEmptyTuple);
  if (integers.size() <= 3) {
    for (i64 v : integers) integer(v);
    return op(integers.size() == 1 ? Op::kTuple1 : integers.size() == 2 ? Op::kTuple2 : Op::kTuple3);
  }
  op(Op::kMark);
  for (i64 v : integers) integer(v);
  op(Op::kTuple);
}

u32 PickleWriter::memoize() {
  if (slots_ < 256)
    op(Op::kBinput), byte(static_cast<u8>(slots_));
  else
    op(Op::kLongBinput), little_endian(slots_, 4);
  return slots_++;
}

void PickleWriter::known(u32 slot) {
  if (slot < 256)
    op(Op::kBinget), byte(static_cast<u8>(slot));
  else
    op(Op::kLongBinget), little_endian(slot, 4);
}

void PickleWriter::repeated_text(std::string_view utf8, u32& slot) {
  if (slot != kNoSlot) return known(slot);
  text(utf8);
  slot = memoize();
}

// Searched one by one: a pickle names a few dozen classes at most.
void PickleWriter::class_name(std::string_view module, std::string_view name) {
  std::string line = cat(module, "\n", name, "\n");
  for (const auto& [known_line, slot] : classes_)
    if (known_line == line) return known(slot);
  op(Op::kGlobal), out_ += line;
  classes_.emplace_back(std::move(line), memoize());
}

std::string PickleWriter::take() { return std::exchange(out_, {}); }

std::string PickleWriter::finish() {
  op(Op::kStop);
  return std::move(out_);
}

}  // namespace mckpt::impl
