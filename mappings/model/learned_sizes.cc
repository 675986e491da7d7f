// The number of heads is in no shape, so that the constant of the code counts only with the width of the
// code.
#include "mappings/model/learned_sizes.h"

#include "core/base/error.h"
#include "mappings/config.h"
#include "mappings/family.h"
#include "mappings/model/source_table.h"
#include "mappings/name_pattern.h"

namespace mckpt::impl {
namespace {

// As the numbers of a config are limited (mappings/config.h).
constexpr i64 kLargest = i64{1} << 28;

i32 find_of_layer(const SourceTable& sources, std::string_view pattern, i64 layer) {
  Numbers numbers;
  numbers['L'] = layer;
  std::string name;
  append_name(name, pattern, numbers);
  return sources.find(name);
}

void learn_layers(const SourceTable& sources, std::string_view pattern, TowerConfig& tower) {
  i64 layers = 0;
  while (find_of_layer(sources, pattern, layers) >= 0) layers++;
  if (layers > 0 && !tower.layers.empty())
    tower.layers.assign(static_cast<std::size_t>(layers), tower.layers[0]);
}

}  // namespace

void learn_sizes(const Family& family, const SourceTable& sources, ModelConfig& model) {
  if (!model.vision.unstated) return;
  TowerConfig& tower = model.vision_tower;
  const i64 width = tower.hidden;
  for (const LearnedSize& size : family.learned) {
    if (!size.number) {
      learn_layers(sources, size.tensor, tower);
      continue;
    }
    const i32 at = find_of_layer(sources, size.tensor, 0);
    if (at < 0 || !sources[at].header_known || std::ssize(sources[at].dims) <= size.dimension) continue;
    const i64 found = sources[at].dims[static_cast<std::size_t>(size.dimension)];
    if (found > 0 && found < kLargest) size.number(model) = found;
  }
  if (tower.hidden != width && !model.vision.heads_stated)
    throw Error(Code::kBadConfig, "the config does not say how many heads the vision tower has")
        .expected(cat("a tower of width ", width,
                      ", whose heads are known, or 'vision_config.num_attention_heads'"))
        .found(cat("a tower of width ", tower.hidden));
  if (tower.hidden % tower.heads != 0)
    throw Error(Code::kBadConfig, "the heads of the vision tower do not divide its width")
        .expected(cat("a divisor of ", tower.hidden))
        .found(tower.heads);
  tower.head_dim = tower.hidden / tower.heads;
}

}  // namespace mckpt::impl
