// The parts of the names of tensors, as the tree of names has them: where a part ends, and which parts have a
// number.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mckpt::impl {

// Where the part of the name that begins at `begin` ends.
std::size_t part_end(std::string_view name, std::size_t begin);
// Whether a part of the name ends there.
bool ends_part(std::string_view name, std::size_t at);

bool is_number(std::string_view s);

// A tensor whose name has the number of an expert in it: "weight12_w" of a module of grouped experts.
struct ExpertName {
  std::string_view stem, number, ending;
};
std::optional<ExpertName> expert_name(std::string_view name);

// The rank in the name of a file of one, and what is behind it: "00_000" and "/model" of
// "mp_rank_00_000/model".
std::optional<std::pair<std::string_view, std::string_view>> rank_in_name(std::string_view name);

// "{0..2,5}". pre: all are numbers.
std::string braced_ranges(const std::vector<std::string_view>& numbers);

}  // namespace mckpt::impl
