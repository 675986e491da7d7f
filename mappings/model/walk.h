// Unrolls a family's tables over a model: visits every place of every section, in the order in which the
// Megatron model registers its parameters.
#pragma once

#include <array>
#include <functional>
#include <span>

#include "core/base/int.h"
#include "mappings/name_pattern.h"

namespace mckpt::impl {

enum class Needs;
enum class Tower : u8;
struct Family;
struct LayerSpec;
struct ModelConfig;
struct Row;
struct Section;
struct TowerConfig;

// One layer, one merger, one MTP depth, or the only place of a section that does not repeat.
struct Site {
  const Section* section = nullptr;
  const LayerSpec* layer = nullptr;  // of sections with layers
  const TowerConfig* tower = nullptr;
  i32 sizes = 0;    // of the layer, as LayerSpec has it
  Numbers numbers;  // global ones
  i64 unit = -1;    // its FSDP unit; only layers are units
};

const TowerConfig& tower_of(const ModelConfig& model, Tower tower);
// The sizes of a layer of the tower; `sizes` as LayerSpec has it.
const TowerConfig& sizes_of(const ModelConfig& model, Tower tower, i32 sizes);

// Calls visit(site) for every place of the model, section by section; the three MTP sections depth by depth.
void each_site(const Family& family, const ModelConfig& model, const std::function<void(const Site&)>& visit);

// The lists of rows that apply; for a layer: the rows of its mixer and of its feed-forward part.
std::array<std::span<const Row>, 2> rows_of(const Site& site);

// Calls visit(row, expert) in order for the rows that apply to the site: once with expert -1 for rows that
// are not of experts, else for each of the experts [first, last). Expert rows are visited row by row, except
// rows that alternate. `form` is how the experts of the section are stored.
void each_row(const Site& site, const ModelConfig& model, Needs form, i64 first_expert, i64 last_expert,
              const std::function<void(const Row&, i64)>& visit);

// The whole name of a row's parameter, or of one of its sources.
std::string megatron_name(const Site& site, const Row& row, i64 expert);
std::string source_name(const Site& site, const Row& row, std::string_view name, i64 expert);
// The whole name of a source with the section's other prefix. pre: it has one.
std::string other_source_name(const Site& site, const Row& row, std::string_view name, i64 expert);

}  // namespace mckpt::impl
