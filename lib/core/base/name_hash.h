// The hash of names that come from files. Every process has a random key: with a fixed hash, a file could
// contain a million names with equal hashes, and a table of them would take hours.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace mckpt::impl {

// For strings and views alike; both give the same hash for the same characters.
struct NameHash {
  // Not noexcept: libstdc++ then stores the hashes in its tables, and does not compute them again for every
  // name that it passes.
  std::size_t operator()(std::string_view name) const;
};

template <typename Name, typename Value>
using NameMap = std::unordered_map<Name, Value, NameHash>;
template <typename Name>
using NameSet = std::unordered_set<Name, NameHash>;

}  // namespace mckpt::impl
