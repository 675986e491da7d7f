// A family's tables unrolled over a model: every place where a section's rows stand, in the order in which
// the Megatron model registers its parameters.
#pragma once

#include <array>
#include <functional>

#include "mappings/family.h"
#include "mappings/name_pattern.h"

namespace mckpt {

// One layer, one merger, one MTP depth, or the only place of a section that does not repeat.
struct Site {
  const Section* section = nullptr;
  const LayerSpec* layer = nullptr;  // of sections with layers
  const TowerConfig* tower = nullptr;
  Numbers numbers;  // global ones
  i64 unit = -1;    // the FSDP unit that it is: layers are, nothing else is
};

void each_site(const Family& family, const ModelConfig& model, const std::function<void(const Site&)>& visit);

// The lists of rows that apply: of a layer those of its mixer and those of its feed-forward part.
std::array<std::span<const Row>, 2> rows_of(const Site& site);

// Calls visit(row, expert) in order for the rows that apply to the site; -1 where the row is of no expert,
// else each of the experts [first, last). Expert rows come row by row, except those that alternate. `form` is
// how the experts of the section are stored.
void each_row(const Site& site, const ModelConfig& model, Needs form, i64 first_expert, i64 last_expert,
              const std::function<void(const Row&, i64)>& visit);

// The whole name of a row's parameter, or of one of its sources.
std::string megatron_name(const Site& site, const Row& row, i64 expert);
std::string source_name(const Site& site, const Row& row, std::string_view name, i64 expert);

}  // namespace mckpt
