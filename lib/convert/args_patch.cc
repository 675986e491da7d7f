#include "convert/args_patch.h"

#include <optional>

#include "io/pickle_opcodes.h"
#include "io/pickle_writer.h"

namespace mckpt {
namespace {

struct Span {
  std::size_t begin, end;
};

constexpr char opcode(Op op) { return static_cast<char>(op); }

// The key as pickles of all protocols write a text, from its opcode on.
std::string key_short(std::string_view name) {
  return cat(std::string(1, opcode(Op::kShortBinunicode)), std::string(1, static_cast<char>(name.size())),
             name);
}
std::string key_long(std::string_view name) {
  PickleWriter p;
  p.text(name);
  std::string all = p.finish();
  return all.substr(2, all.size() - 3);  // without protocol and end
}

// Behind the key: the opcode that puts it into the memo, if any, then the integer.
std::optional<Span> integer_behind(const std::string& pickle, std::size_t at) {
  auto op = [&](std::size_t i) {
    return i < pickle.size() ? static_cast<Op>(static_cast<u8>(pickle[i])) : Op::kStop;
  };
  if (op(at) == Op::kMemoize) at += 1;
  if (op(at) == Op::kBinput) at += 2;
  if (op(at) == Op::kLongBinput) at += 5;
  std::size_t bytes = op(at) == Op::kBinint1 ? 2 : op(at) == Op::kBinint2 ? 3 : op(at) == Op::kBinint ? 5 : 0;
  if (bytes == 0 || at + bytes > pickle.size()) return std::nullopt;
  return Span{at, at + bytes};
}

std::string integer_text(i64 value, std::size_t bytes) {
  std::string out(1, opcode(bytes == 2 ? Op::kBinint1 : bytes == 3 ? Op::kBinint2 : Op::kBinint));
  for (std::size_t i = 0; i + 1 < bytes; i++) out += static_cast<char>(value >> 8 * i);
  return out;
}

}  // namespace

bool replace_integer(std::string& pickle, std::string_view name, i64 value) {
  std::optional<Span> found;
  for (const std::string& key : {key_short(name), key_long(name)})
    for (std::size_t at = pickle.find(key); at != pickle.npos; at = pickle.find(key, at + 1)) {
      std::optional<Span> integer = integer_behind(pickle, at + key.size());
      if (!integer) continue;
      if (found) return false;
      found = integer;
    }
  if (!found || value < 0 || value > INT32_MAX) return false;
  std::size_t needs = value < 256 ? 2 : value < 65536 ? 3 : 5, has = found->end - found->begin;
  bool frames = pickle.size() > 2 && static_cast<u8>(pickle[1]) >= 4;
  if (needs > has && frames) return false;
  std::size_t bytes = frames ? has : needs;
  pickle.replace(found->begin, has, integer_text(value, bytes));
  return true;
}

}  // namespace mckpt
