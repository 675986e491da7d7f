// Conversions of a value to the type that the caller expects, which throw kBadPickle if it is another, and
// look-ups in dicts.
#include "io/pickle/value.h"
#include "core/base/error.h"

#include <cstring>

namespace mckpt::impl {
namespace {

// `what` is the subject of the message: "a tensor's shape".
[[noreturn]] void throw_kind(std::string_view what, PickleValue::Kind kind, std::string_view expected) {
  throw Error(Code::kBadPickle, cat(what, " is of the wrong type")).expected(expected).found(kind_name(kind));
}

}  // namespace

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
