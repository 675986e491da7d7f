// A model without a table: its parameters as they are listed, each from a tensor of the same name, and whole
// on every rank of a tensor-parallel group. Megatron-FSDP accepts any such model, without FSDP units,
// experts, and names that other programs know.
#pragma once

#include <deque>
#include <span>
#include <string>
#include <vector>

#include "mappings/family.h"

namespace mckpt::impl {

inline constexpr std::string_view kPlainFamily = "plain";

class PlainFamily {
 public:
  struct Parameter {
    std::string_view name;
    std::span<const i64> dims;
  };
  // Parameters are in order of registration. Throws kNotHeld for a parameter without dimensions or items, or
  // with a name that a table cannot contain.
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

}  // namespace mckpt::impl
