// A code is a letter and a value. The code of a container is a digest of the codes of its parts, each behind its
// length; sets and dicts have their parts sorted.
#include "io/pickle/keys.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/base/error.h"
#include "core/base/text.h"
#include "io/pickle/arena.h"
#include "io/pickle/classes.h"
#include "io/pickle/render.h"
#include "io/sums/sha256.h"

namespace mckpt::impl {
namespace {

using Kind = PickleValue::Kind;

constexpr std::size_t kMostName = 200, kMostNamedBytes = 64, kDigits = 8;

std::string with_bytes(char letter, std::span<const u8> bytes) {
  std::string out(1, letter);
  out.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return out;
}

// Appends a part of a container, which its length sets apart from the next one.
void add_part(std::string& to, std::string_view part) { to += cat(part.size(), ":", part); }

// b'abc', as Python prints it.
std::string bytes_literal(std::span<const u8> bytes) {
  std::string out = "b'";
  for (u8 byte : bytes) {
    static constexpr char kHex[] = "0123456789abcdef";
    if (byte == '\'' || byte == '\\') out += '\\';
    if (byte >= 0x20 && byte < 0x7f)
      out += static_cast<char>(byte);
    else
      out += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
  }
  return out + "'";
}

// Whether pickle_line() shows all of the key and nothing else could look so; a key's tuples are 8 deep at most.
bool is_shown_whole(PickleValue v, int depth = 0) {
  switch (v.kind()) {
    case Kind::kNone:
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kWideInt:
      return true;
    case Kind::kFloat:
      return !std::isnan(v.as_float());
    case Kind::kText:
      return v.text().find_first_of("'\\") == std::string_view::npos;
    case Kind::kTuple:
      return !v.is_second_type() && depth < 8 && std::ranges::all_of(v.tuple(), [&](PickleValue part) {
        return is_shown_whole(part, depth + 1);
      });
    default:
      return false;
  }
}

}  // namespace

std::string PickleCodes::of(PickleValue v) {
  const bool second = v.is_second_type() && equal_ == Equal::kByType;
  switch (v.kind()) {
    case Kind::kNone:
      return "n";
    case Kind::kBool:
    case Kind::kInt:
    case Kind::kWideInt:
    case Kind::kFloat:
      return number(v);
    case Kind::kBigInt:
      return with_bytes('I', v.bytes());
    case Kind::kText:
      return with_bytes('t', v.bytes());
    case Kind::kBytes:
      return with_bytes(second ? 'Y' : 'y', v.bytes());
    case Kind::kTuple:
    case Kind::kList:
    case Kind::kSet:
    case Kind::kDict:
    case Kind::kClass:
    case Kind::kObject:
      return container(v);
    case Kind::kRow:
    case Kind::kHole:
    case Kind::kStorage:
      break;
  }
  throw Error(
      Code::kUnsupportedPickle,
      "a key of a dict or an item of a set contains a tensor or a record of one, which are not compared there");
}

// To Python 1, True and 1.0 are one key, and so are 0.0 and -0.0. A float beyond the integers of 64 bits counts
// as equal to no other kind of number.
std::string PickleCodes::number(PickleValue v) const {
  const bool python = equal_ == Equal::kToPython;
  if (v.is_int()) return cat("i", v.as_int());
  if (v.is(Kind::kBool)) return cat(python ? "i" : "b", v.as_bool() ? 1 : 0);
  const double real = v.as_float();
  if (python && std::trunc(real) == real && real >= -0x1p63 && real < 0x1p63)
    return cat("i", static_cast<i64>(real));
  return cat("f", std::bit_cast<u64>(real));
}

std::string PickleCodes::container(PickleValue v) {
  if (v.is(Kind::kClass)) return digest(v);
  const auto [at, is_new] = known_.try_emplace({v.node(), v.is_second_type()});
  if (!is_new && at->second.empty())
    throw Error(Code::kUnsupportedPickle,
                "a key of a dict or an item of a set contains itself: it is not compared");
  if (!is_new) return at->second;
  depth_++;
  try {
    if (depth_ > PickleArena::kMostDepth)
      throw Error(Code::kPickleLimit, "a key of a dict or an item of a set is nested too deep");
    at->second = digest(v);
  } catch (...) {
    depth_--;
    known_.erase(at);
    throw;
  }
  depth_--;
  return at->second;
}

std::string PickleCodes::digest(PickleValue v) {
  const bool python = equal_ == Equal::kToPython;
  std::string all(python_type(python ? v.as_first_type() : v));
  all += ' ';
  std::vector<std::string> parts;
  for (PickleValue item : v.items()) parts.push_back(of(item));
  for (PickleEntry e : v.entries()) {
    std::string& entry = parts.emplace_back();
    add_part(entry, of(e.key)), add_part(entry, of(e.value));
  }
  if (v.is(Kind::kSet) || v.is(Kind::kDict)) std::ranges::sort(parts);
  if (v.is(Kind::kDict)) parts.push_back(of(v.attributes()));
  if (v.is(Kind::kClass)) {
    parts = {std::string(v.as_class().module), std::string(v.as_class().name)};
  } else if (v.is(Kind::kObject)) {
    const PickleObject& o = v.as_object();
    all += o.is_member() ? "member " : "object ";
    parts = {std::string(o.type->module), std::string(o.type->name), of(o.args), of(o.state), of(o.items)};
  }
  for (const std::string& part : parts) add_part(all, part);
  Sha256 sum;
  sum.update({reinterpret_cast<const u8*>(all.data()), all.size()});
  return with_bytes('d', sum.digest());
}

std::string key_name(PickleValue key) {
  if (key.is(Kind::kText)) return std::string(key.text());
  if (key.is(Kind::kBytes) && key.size() <= static_cast<i64>(kMostNamedBytes) && !key.is_second_type())
    return bytes_literal(key.bytes());
  std::string line = pickle_line(key, kMostName);
  if (line.size() < kMostName && is_shown_whole(key)) return line;
  try {
    const std::string code = PickleCodes().of(key);
    Sha256 sum;
    sum.update({reinterpret_cast<const u8*>(code.data()), code.size()});
    return cat(line, "~", sum.hex_digest().substr(0, kDigits));
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    return line;  // a key with a tensor in it
  }
}

}  // namespace mckpt::impl
