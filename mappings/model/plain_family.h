// A model that no table knows: its parameters as they are listed, each from a tensor of the same name, whole
// on every rank of a tensor-parallel group. Megatron-FSDP takes any such model; what it lacks are FSDP units,
// experts, and names that another program would know.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "mappings/family.h"

namespace mckpt {

inline constexpr std::string_view kPlainFamily = "plain";

class PlainFamily {
 public:
  struct Parameter {
    std::string_view name;
    std::span<const i64> dims;
  };
  // In order of registration. Throws kNotHeld for a parameter that has no dimensions or no items, or whose
  // name cannot stand in a table.
  explicit PlainFamily(std::span<const Parameter> parameters);
  PlainFamily(const PlainFamily&) = delete;
  PlainFamily& operator=(const PlainFamily&) = delete;

  const Family& family() const { return family_; }

 private:
  std::deque<std::string> texts_;
  std::vector<Row> rows_;
  Section section_;
  Family family_;
};

}  // namespace mckpt
