// Finds the fields of a record by name, in any order. A record written in the expected order costs one
// comparison a field: the search for each key starts behind the field that was found last.
#include "io/dcp/metadata/fields.h"

#include <algorithm>

#include "core/base/error.h"

namespace mckpt::impl {

void throw_bad_metadata(std::string message) { throw Error(Code::kBadMetadata, std::move(message)); }

// Remembers the keys as well, so that the next record can be recognised as one of the same form.
void FieldFinder::find() {
  keys_.clear();
  places_.fill(0);
  std::size_t next = 0;
  for (std::size_t at = 0; at + 1 < state_.size(); at += 2) {
    PickleValue key = state_[at];
    keys_.push_back(key);
    if (!key.is(PickleValue::Kind::kText)) continue;
    std::size_t tried = 0;
    for (; tried < names_.size(); tried++) {
      std::size_t field = (next + tried) % names_.size();
      if (names_[field] != key.text()) continue;
      places_[field] = at + 1;
      next = field + 1;
      break;
    }
    if (tried == names_.size()) add_stranger(key.text());
  }
}

void FieldFinder::add_stranger(std::string_view field) {
  constexpr std::size_t kMost = 10;
  if (strangers_.size() < kMost && std::ranges::find(strangers_, field) == strangers_.end())
    strangers_.push_back(field);
}

void FieldFinder::throw_missing(std::size_t field) const {
  throw_bad_metadata(cat("a ", class_name_, " in .metadata has no field '", names_[field], "'"));
}

void FieldFinder::throw_no_integer(std::size_t field) const {
  throw_bad_metadata(cat("the field '", names_[field], "' of a ", class_name_, " in .metadata is ",
                         kind_name((*this)[field].kind()),
                         ", not an integer of 64 bits: out of range or of another type"));
}

}  // namespace mckpt::impl
