// A pickle as its opcodes, and the stretches of opcodes that make one value each.
//
//   } q0 ( X"a" K1 X"b" ] ( K2 K3 e u .        values: "a", 1, "b", 2, 3, [2, 3] = `] ( K2 K3 e`, the dict
//
// Lengths in front of texts are left out and written anew. Frames are left out: they say only where bytes may
// be read at once. MEMOIZE becomes a PUT with its number, so that opcodes can come and go before it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl::mutate {

struct PickleOp {
  u8 code = 0;
  std::string argument;  // as stored, without a length in front
};

// How the argument of an opcode is stored: so many bytes, or a number of lines, or bytes behind their length.
struct ArgumentForm {
  int fixed = 0, lines = 0, length_bytes = 0;
};
// Nothing for a byte that is not an opcode.
std::optional<ArgumentForm> argument_form(u8 code);
const std::string& all_opcodes();

struct PickleParts {
  std::vector<PickleOp> ops;
  std::size_t end = 0;  // of the bytes that it was made of

  std::string bytes() const;
};

// Nothing where the bytes at `begin` are not opcodes up to a STOP.
std::optional<PickleParts> pickle_parts(const std::string& bytes, std::size_t begin = 0);

struct PickleStretch {
  std::size_t begin, end;  // opcodes
  u8 user;                 // the opcode that takes the value
  std::size_t place;       // among those that it takes, the last ones first
};
// Values that an opcode takes from the stack; opcodes that lack a value on the stack end the walk.
std::vector<PickleStretch> pickle_values(const std::vector<PickleOp>& ops);

// The number of an integer opcode, also of PUT and GET; and the opcode for a number, the shortest one.
std::optional<i64> integer_of(const PickleOp& op);
PickleOp integer_op(i64 value);
bool is_put(u8 code);
bool is_get(u8 code);
bool is_text(u8 code);  // of names: UNICODE and STRING in their forms
PickleOp memo_op(bool put, i64 number);

}  // namespace mckpt::impl::mutate
