// Layer items as one line, so that an expected value reads like the pattern: "0:M@0 1:[*-]@1".
#pragma once

#include "core/base/text.h"
#include "core/hybrid/pattern.h"
#include "tests/support/golden_json.h"

namespace mckpt::impl {

inline std::string item_dump(i64 logical, i64 physical, bool is_group, std::string_view symbols) {
  return cat(logical, ":", is_group ? "[" : "", symbols, is_group ? "]" : "", "@", physical);
}

inline std::string joined(std::string list, std::string_view next) {
  return list.empty() ? std::string(next) : cat(list, " ", next);
}

inline std::string dump(std::span<const PatternItem> items, std::string_view text) {
  std::string out;
  for (const PatternItem& i : items)
    out = joined(std::move(out), item_dump(i.logical_index, i.physical_first, i.is_group,
                                           text.substr(i.byte, i.physical_count)));
  return out;
}

// The dump of a golden file's items. Their kinds must fit their symbols.
inline std::string dump(const GoldenJson& items) {
  std::string out;
  for (const GoldenJson& i : items.items()) {
    const std::string& symbols = i["symbols"].string();
    std::vector<std::string> kinds = i["kinds"].strings();
    bool fits = std::ssize(symbols) == i["physical_count"].integer() && kinds.size() == symbols.size();
    for (std::size_t k = 0; fits && k < kinds.size(); k++)
      fits = find_layer_kind(symbols[k])->name == kinds[k];
    out = joined(std::move(out),
                 item_dump(i["logical_index"].integer(), i["physical_first"].integer(),
                           i["is_group"].boolean(), fits ? std::string_view(symbols) : "kinds do not fit"));
  }
  return out;
}

inline const GoldenJson& expected(const GoldenJson& c, Dialect dialect) {
  return dialect == Dialect::kGrouped || c["flat_dialect_same"].boolean() ? c["expected_grouped"]
                                                                          : c["expected_flat"];
}

// "" where the answer is a value, else the class of the failure.
template <typename T>
std::string_view fault_of(const Checked<T>& checked) {
  const auto* failure = std::get_if<PatternFailure>(&checked);
  return failure ? fault_name(failure->fault) : "";
}

inline std::string fault_of(const GoldenJson& answer) {
  return answer["ok"].boolean() ? "" : answer["error"].string();
}

}  // namespace mckpt::impl
