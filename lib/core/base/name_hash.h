// The hash of names that come from files. It is keyed anew in every process: with a fixed one, a file could
// hold a million names of one hash, and a table of them would take hours.
#pragma once

#include <cstddef>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

namespace mckpt {

struct NameHash {
  // Not noexcept: libstdc++ stores the hashes in its tables then, where it would else compute that of every name
  // it passes again.
  std::size_t operator()(std::string_view name) const;
};

template <typename Name, typename Value>
using NameMap = std::unordered_map<Name, Value, NameHash>;
template <typename Name>
using NameSet = std::unordered_set<Name, NameHash>;

}  // namespace mckpt
