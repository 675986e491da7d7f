// Conversions of a value to the type that the caller expects, which throw kBadPickle if it is another, and
// look-ups in dicts.
#include "io/pickle/value.h"
#include "core/base/error.h"

#include <cstring>
#include <unordered_set>
#include <vector>

namespace mckpt::impl {
namespace {

// `what` is the subject of the message: "a tensor's shape".
[[noreturn]] void throw_kind(std::string_view what, PickleValue::Kind kind, std::string_view expected) {
  throw Error(Code::kBadPickle, cat(what, " is of the wrong type")).expected(expected).found(kind_name(kind));
}

}  // namespace

// A container is looked into once.
bool contains_kind(PickleValue v, PickleValue::Kind kind) {
  std::vector<PickleValue> left{v};
  std::unordered_set<const PickleNode*> seen;
  while (!left.empty()) {
    const PickleValue one = left.back();
    left.pop_back();
    if (one.is(kind)) return true;
    if (one.container() == nullptr || !seen.insert(one.container()).second) continue;
    for (PickleValue item : one.items()) left.push_back(item);
    for (PickleEntry e : one.entries()) left.push_back(e.key), left.push_back(e.value);
    left.push_back(one.attributes());
    if (!one.is(PickleValue::Kind::kObject)) continue;
    const PickleObject& o = one.as_object();
    left.insert(left.end(), {o.args, o.state, o.items});
  }
  return false;
}

// In the order of PickleValue::Kind.
std::string_view kind_name(PickleValue::Kind kind) {
  static constexpr std::string_view kNames[] = {
      "None",     "a bool",   "an integer", "a record",
      "nothing",  "a class",  "an integer", "an integer of more than 64 bits",
      "a float",  "a string", "bytes",      "a tuple",
      "a list",   "a set",    "a dict",     "an object",
      "a storage"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view python_type(PickleValue v) {
  using Kind = PickleValue::Kind;
  const bool second = v.is_second_type();
  switch (v.kind()) {
    case Kind::kBytes:
      return second ? "bytearray" : "bytes";
    case Kind::kTuple:
      return second ? "torch.Size" : "tuple";
    case Kind::kList:
      return second ? "deque" : "list";
    case Kind::kSet:
      return second ? "frozenset" : "set";
    case Kind::kDict:
      return second ? "OrderedDict" : "dict";
    default:
      return "";
  }
}

i64 PickleValue::to_int(std::string_view what) const {
  if (!is_int()) throw_kind(what, kind(), "an integer of 64 bits");
  return as_int();
}

double PickleValue::to_float(std::string_view what) const {
  if (is_int()) return static_cast<double>(as_int());
  if (!is(Kind::kFloat)) throw_kind(what, kind(), "a float");
  return as_float();
}

std::string_view PickleValue::to_text(std::string_view what) const {
  if (!is(Kind::kText)) throw_kind(what, kind(), "a string");
  return text();
}

i64 PickleValue::size() const {
  switch (kind()) {
    case Kind::kText:
    case Kind::kBytes:
    case Kind::kBigInt:
    case Kind::kTuple:
    case Kind::kList:
    case Kind::kSet:
    case Kind::kDict:
      return static_cast<i64>(node()->count);
    default:
      return 0;
  }
}

const PickleValue* PickleValue::find(std::string_view key) const {
  if (!is(Kind::kDict)) return nullptr;
  // The last of equal keys counts, as in Python.
  const PickleValue* found = nullptr;
  for (const PickleChunk* c = pointer<PickleList>()->first; c != nullptr; c = c->next)
    for (u32 i = 0; i + 1 < c->count; i += 2)
      if (const PickleValue* k = c->values() + i; k->is(Kind::kText) && k->text() == key) found = k + 1;
  return found;
}

// The state of a class with __slots__ is a tuple (dict or None, dict of slots).
const PickleValue* PickleObject::field(std::string_view name) const {
  if (const PickleValue* v = state.find(name)) return v;
  for (const PickleValue& part : state.tuple())
    if (const PickleValue* v = part.find(name)) return v;
  return nullptr;
}

}  // namespace mckpt::impl
