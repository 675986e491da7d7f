// Fields of the records of a .metadata, found by name. Writers differ in order and company: torch leaves
// out some fields that are None, forks add their own. Private to io/dcp.
//
//   state of a record   "fqn" "a.b"  "index" 0  "offset" (6, 0)       keys and values in turn
//   places_                    1              3           5           where each field's value is in it
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "io/pickle/value.h"

namespace mckpt::impl {

// Finds the fields of one class's records. The keys of the next record mostly are the same texts of the
// pickle (picklers write a repeated text as a number in the memo), and then its fields are at the same
// places: no text is compared at all.
class FieldFinder {
 public:
  static constexpr std::size_t kMostFields = 4;

  // `names` are best in the order in which torch writes them: each is then compared once.
  FieldFinder(std::string_view class_name, std::span<const std::string_view> names)
      : class_name_(class_name), names_(names) {}

  // Turns to a record's state, keys and values in turn. pre: `state` outlives the calls below.
  void look(std::span<const PickleValue> state) {
    state_ = state;
    if (!has_known_keys()) find();
  }
  // None if the record has no such field. If keys are equal, the last counts, as in Python. pre: look()
  PickleValue optional(std::size_t field) const {
    return places_[field] == 0 ? PickleValue() : state_[places_[field]];
  }
  // Throws kBadMetadata if the record has no such field.
  PickleValue operator[](std::size_t field) const {
    if (places_[field] == 0) throw_missing(field);
    return state_[places_[field]];
  }
  // Throws kBadMetadata if the field is missing or no integer of 64 bits.
  i64 integer(std::size_t field) const {
    PickleValue v = (*this)[field];
    if (!v.is_int()) throw_no_integer(field);
    return v.as_int();
  }

  std::string_view class_name() const { return class_name_; }
  // The fields of all records so far that are not among the names, the first few of them.
  const std::vector<std::string_view>& strangers() const { return strangers_; }

 private:
  bool has_known_keys() const {
    if (state_.size() != 2 * keys_.size()) return false;
    for (std::size_t i = 0; i < keys_.size(); i++)
      if (!(state_[2 * i] == keys_[i])) return false;
    return true;
  }
  void find();
  void add_stranger(std::string_view field);
  [[noreturn]] void throw_missing(std::size_t field) const;
  [[noreturn]] void throw_no_integer(std::size_t field) const;

  std::string_view class_name_;
  std::span<const std::string_view> names_;
  std::span<const PickleValue> state_;
  std::vector<PickleValue> keys_;                  // of the state that places_ are of
  std::array<std::size_t, kMostFields> places_{};  // of the values in the state; 0: not there
  std::vector<std::string_view> strangers_;
};

// Throws kBadMetadata.
[[noreturn]] void throw_bad_metadata(std::string message);

}  // namespace mckpt::impl
