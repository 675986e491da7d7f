// Finds the opcodes of a value in a pickle and replaces or adds bytes there. An entry of a dictionary is a
// key, a value, and after each of the two an optional opcode that stores it in the memo:
//
//   key                                memo     value      memo
//   X <length> "num_layers"            q 05     K 1c       -          protocols 2 and 3 (BINUNICODE, BINPUT, BININT1)
//   8c <length> "num_layers"           94       K 1c       -          protocol 4 (SHORT_BINUNICODE, MEMOIZE)
//
// A pickle of protocol 4 is wrapped in frames, each with its length; a changed length is possible with one
// frame only.
#include "convert/facts/args_patch.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "core/base/text.h"
#include "io/pickle/opcodes.h"
#include "io/pickle/write/writer.h"

namespace mckpt::impl {
namespace {

// A range of bytes of the pickle, [begin, end).
struct Span {
  std::size_t begin, end;
};

constexpr char opcode(Op op) { return static_cast<char>(op); }

// The bytes of a text of up to 255 bytes in protocol 4, from its opcode on; key_long() gives the bytes of
// protocols 2 and 3.
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

Op op_at(const std::string& pickle, std::size_t i) {
  return i < pickle.size() ? static_cast<Op>(static_cast<u8>(pickle[i])) : Op::kStop;
}

// The position behind the opcode at `at` that stores a value in the memo; `at` itself if there is no such
// opcode.
std::size_t behind_memo(const std::string& pickle, std::size_t at) {
  if (op_at(pickle, at) == Op::kMemoize) return at + 1;
  if (op_at(pickle, at) == Op::kBinput) return at + 2;
  return op_at(pickle, at) == Op::kLongBinput ? at + 5 : at;
}

// The integer behind a key and its memo opcode, with the integer's opcode; nothing if the value is not an
// integer of up to 4 bytes.
std::optional<Span> integer_behind(const std::string& pickle, std::size_t at) {
  at = behind_memo(pickle, at);
  auto op = [&](std::size_t i) { return op_at(pickle, i); };
  std::size_t bytes = op(at) == Op::kBinint1 ? 2 : op(at) == Op::kBinint2 ? 3 : op(at) == Op::kBinint ? 5 : 0;
  if (bytes == 0 || at + bytes > pickle.size()) return std::nullopt;
  return Span{at, at + bytes};
}

// The opcode and the little-endian bytes of an integer; `bytes` counts both.
std::string integer_text(i64 value, std::size_t bytes) {
  std::string out(1, opcode(bytes == 2 ? Op::kBinint1 : bytes == 3 ? Op::kBinint2 : Op::kBinint));
  for (std::size_t i = 0; i + 1 < bytes; i++) out += static_cast<char>(value >> 8 * i);
  return out;
}

// The end of the value behind a key, with the memo opcode behind the value. Nothing if the value is not
// plain: not None, a boolean, a small integer, a text, a class, a reference to the memo, or a list of these.
std::optional<std::size_t> value_end(const std::string& pickle, std::size_t at, bool in_list = false) {
  at = behind_memo(pickle, at);
  auto number = [&](std::size_t from, std::size_t bytes) {
    std::size_t n = 0;
    for (std::size_t i = 0; i < bytes && from + i < pickle.size(); i++)
      n |= static_cast<std::size_t>(static_cast<u8>(pickle[from + i])) << 8 * i;
    return n;
  };
  std::size_t bytes = 0;
  switch (op_at(pickle, at)) {
    case Op::kNone:
    case Op::kNewtrue:
    case Op::kNewfalse:
      bytes = 1;
      break;
    case Op::kBinint1:
    case Op::kBinget:
      bytes = 2;
      break;
    case Op::kBinint2:
      bytes = 3;
      break;
    case Op::kBinint:
    case Op::kLongBinget:
      bytes = 5;
      break;
    case Op::kShortBinunicode:
      bytes = 2 + number(at + 1, 1);
      break;
    case Op::kBinunicode:
      bytes = 5 + number(at + 1, 4);
      break;
    case Op::kGlobal: {  // the lines of the module and of the name
      const std::size_t module_end = pickle.find('\n', at);
      const std::size_t name_end = module_end == pickle.npos ? module_end : pickle.find('\n', module_end + 1);
      if (name_end == pickle.npos) return std::nullopt;
      bytes = name_end + 1 - at;
      break;
    }
    case Op::kEmptyList: {  // ] ( items e, or ] item a
      std::optional<std::size_t> end = behind_memo(pickle, at + 1);
      const bool several = op_at(pickle, *end) == Op::kMark;
      const Op last = several ? Op::kAppends : Op::kAppend;
      for (*end += several ? 1 : 0; end && op_at(pickle, *end) != last;)
        end = in_list ? std::nullopt : value_end(pickle, *end, true);
      if (!end) return std::nullopt;
      bytes = *end + 1 - at;
      break;
    }
    default:
      return std::nullopt;
  }
  if (bytes > pickle.size() - at) return std::nullopt;
  std::size_t end = behind_memo(pickle, at + bytes);
  return end < pickle.size() ? std::optional(end) : std::nullopt;
}

// Adds `more` bytes to the length of the pickle's frame; true also for a pickle without frames. False if the
// first frame is not the whole pickle.
bool widen_frame(std::string& pickle, std::size_t more) {
  constexpr std::size_t kBegin = 2, kHead = 9;
  bool framed = pickle.size() > kBegin + kHead && static_cast<u8>(pickle[1]) >= 4;
  if (!framed || op_at(pickle, kBegin) != Op::kFrame) return true;
  u64 bytes = 0;
  for (std::size_t i = 0; i < 8; i++) bytes |= u64{static_cast<u8>(pickle[kBegin + 1 + i])} << 8 * i;
  if (bytes != pickle.size() - kBegin - kHead) return false;
  bytes += more;
  for (std::size_t i = 0; i < 8; i++) pickle[kBegin + 1 + i] = static_cast<char>(bytes >> 8 * i);
  return true;
}

// The places where the key has a plain value, each from the key to the end of the value, in ascending order.
std::vector<Span> entries_of(const std::string& pickle, std::string_view name) {
  std::vector<Span> entries;
  for (const std::string& key : {key_short(name), key_long(name)})
    for (std::size_t at = pickle.find(key); at != pickle.npos; at = pickle.find(key, at + 1))
      if (std::optional<std::size_t> end = value_end(pickle, at + key.size())) entries.push_back({at, *end});
  std::sort(entries.begin(), entries.end(), [](Span a, Span b) { return a.begin < b.begin; });
  return entries;
}

// The bytes of a key and its value, without opcodes for the memo.
std::string entry_text(std::string_view name, const ArgValue& value) {
  PickleWriter p;
  if (const DType* type = std::get_if<DType>(&value)) {
    p.text(name);
    std::string key = p.finish();
    return cat(key.substr(2, key.size() - 3), std::string(1, opcode(Op::kGlobal)), "torch\n",
               dtype_info(*type).name, "\n");
  }
  p.text(name);
  if (const auto* text = std::get_if<std::string>(&value))
    p.text(*text);
  else if (const i64* number = std::get_if<i64>(&value))
    p.integer(*number);
  else if (const bool* flag = std::get_if<bool>(&value))
    p.boolean(*flag);
  else
    p.op(Op::kNone);
  std::string all = p.finish();
  return all.substr(2, all.size() - 3);  // without protocol and end
}

// Whether the entry has the value, in the opcodes of entry_text().
bool has_value(const std::string& pickle, Span entry, std::string_view name, const ArgValue& value) {
  const std::string key = key_long(name), wanted = entry_text(name, value).substr(key.size());
  if (pickle.compare(entry.begin, key.size(), key) != 0) return false;
  const std::size_t at = behind_memo(pickle, entry.begin + key.size());
  return pickle.compare(at, wanted.size(), wanted) == 0 &&
         behind_memo(pickle, at + wanted.size()) == entry.end;
}

}  // namespace

bool put_value(std::string& pickle, std::string_view name, const ArgValue& value, std::string_view beside) {
  std::vector<Span> entries = entries_of(pickle, name);
  bool fresh = entries.empty() && !beside.empty();
  if (fresh) entries = entries_of(pickle, beside);
  if (entries.empty()) return false;
  // Several entries of the key must follow each other: they are then of one dictionary, and all but the first
  // were added by earlier calls. The new entry replaces those and keeps the first.
  for (std::size_t i = 1; i < entries.size(); i++) {
    std::size_t end = entries[i - 1].end;
    if (entries[i].begin != end + (op_at(pickle, end) == Op::kSetitem ? 1 : 0)) return false;
  }
  std::size_t begin = fresh ? entries.back().end : entries[0].end, end = entries.back().end;
  // Where the first value is the wanted one again, the pickle becomes what it was.
  if (!fresh && has_value(pickle, entries[0], name, value)) {
    if (!widen_frame(pickle, begin - end)) return false;
    pickle.erase(begin, end - begin);
    return true;
  }
  // SETITEM sets one entry, SETITEMS all entries up to the mark: behind SETITEM the new entry needs its own.
  std::string entry = entry_text(name, value);
  if (op_at(pickle, begin) == Op::kSetitem) entry.insert(entry.begin(), opcode(Op::kSetitem));
  if (!widen_frame(pickle, entry.size() - (end - begin))) return false;
  pickle.replace(begin, end - begin, entry);
  return true;
}

bool replace_integer(std::string& pickle, std::string_view name, i64 value) {
  // The last one of several entries counts.
  if (entries_of(pickle, name).size() > 1) return false;
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

}  // namespace mckpt::impl
