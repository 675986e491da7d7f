// Which family is nearest to a model that no family has, and the first map file of that model: the nearest
// family's table with the rows that do not fit marked.
//
//   phi3   llama explains 11 of 15 tensors
//     rows of llama that find no tensor, or one of another shape     in the map, each with a "todo"
//     tensors that no row of llama reads                             in the map, each with a "todo"
//     all other rows                                                 come with the base
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"
#include "mappings/map_file/map.h"
#include "mappings/map_file/name_kinds.h"

namespace mckpt::impl {

struct Family;
struct ModelConfig;

// How far the table of a family explains a model: a row explains the tensors that have its sources' names and
// shapes.
struct Explained {
  const Family* family = nullptr;
  i64 tensors = 0;                     // that rows of the family, or its list of unread tensors, explain
  std::vector<MapRow> unfit{};         // rows that the model should have and of which a source is not there
  std::vector<std::size_t> unknown{};  // kinds that no row names, in the order of the kinds
};

// `numbers`: the model's, as the family's reader takes them; null if it does not take the config. Then all
// rows without a condition are looked for, with the shapes of `usual`: the numbers under the names that most
// configs have. Null: names alone count.
Explained explained_by(const Family& family, std::span<const NameKind> kinds, const ModelConfig* numbers,
                       const ModelConfig* usual);

// Whether layers of the family can have experts, if the model has them, and be without if it has none.
bool may_hold(const Family& family, const ModelConfig& model);

// The first map of a model. All its rows are marked; the entries under "config" are left to the caller.
MapFile draft_map(const Explained& nearest, std::span<const NameKind> kinds);

}  // namespace mckpt::impl
