// Runs the interpreter over a stream and keeps what it made; turns its classes into notes for the user.
#include "io/pickle/pickle.h"

#include <algorithm>

#include "core/base/error_code.h"
#include "core/base/text.h"
#include "io/pickle/machine.h"

namespace mckpt::impl {
namespace {

// "module.name", escaped.
std::string class_name(const PickleClass& c) { return cat(escaped(c.module), ".", escaped(c.name)); }

}  // namespace

Pickle::Pickle(std::span<const u8> bytes, const PickleRules& rules)
    : stored_bytes_(rules.stored_bytes >= 0 ? rules.stored_bytes : static_cast<i64>(bytes.size())),
      arena_(stored_bytes_) {
  PickleMachine(*this, bytes, rules).run();
}

std::shared_ptr<const Pickle> Pickle::own(std::vector<u8> bytes, const PickleRules& rules) {
  auto pickle = std::make_shared<Pickle>(bytes, rules);
  pickle->owned_ = std::move(bytes);  // moving a vector leaves its bytes where they are
  return pickle;
}

// An unsafe class is one note each, because each may run code; unlisted ones share a warning.
std::vector<PickleNote> Pickle::notes() const {
  std::vector<PickleNote> out;
  std::vector<std::string> unlisted;
  i64 first_unlisted = -1;
  for (const PickleClass& c : classes_) {
    if (c.trust == Trust::kUnsafe || (c.calls > 0 && unsafe_to_call(c)))
      out.push_back({Code::kUnsafePickle,
                     cat("the pickle names the global ", class_name(c), c.calls > 0 ? " and calls it" : "",
                         ", which is not allowed: a loader that runs pickles would run it"),
                     c.offset});
    else if (c.trust == Trust::kUnlisted) {
      unlisted.push_back(class_name(c));
      if (first_unlisted < 0) first_unlisted = c.offset;
    }
  }
  out.insert(out.end(), notes_.begin(), notes_.end());
  if (!unlisted.empty())
    out.push_back(
        {Code::kUnlistedClass,
         cat("mckpt does not know these classes and shows their objects as records: ", listed(unlisted)),
         first_unlisted, true});
  return out;
}

}  // namespace mckpt::impl
