// The layers of Llama-Nemotron (DeciLM): a search chose for each block its groups of keys and values, the
// width of its MLP, and whether it has either of them. A config has no width for all layers and no number
// of groups:
//
//   {"attention": {"n_heads_in_group": 8, "no_op": false},     64 heads: 8 groups
//    "ffn":       {"ffn_mult": 2.625, "no_op": false}}         hidden size 8192: int(2 * 2.625 * 8192 / 3) = 14336
//   {"attention": {"no_op": true}, "ffn": {"no_op": true}}     the layer has no tensor; its number stays
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/config/fields.h"
#include "hf/config/named_parts.h"
#include "hf/config/parts.h"
#include "io/json/json.h"
#include "mappings/config.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kBlocks = "block_configs";

// One block; a number that it does not have is absent.
struct Block {
  std::optional<i64> groups, ffn;
};

bool is_there(const ConfigFields& part) {
  if (part.flag_or("replace_with_linear", false))
    throw part.unsupported("replace_with_linear",
                           "is true; Megatron's model of the family has no such linear layer");
  return !part.flag_or("no_op", false);
}

i64 groups_of(const ConfigFields& attention, i64 heads) {
  i64 each = attention.size("n_heads_in_group");
  must_divide(attention, "num_attention_heads", heads, "n_heads_in_group", each);
  return heads / each;
}

// The width that the model computes: a part of the hidden size, rounded up to a multiple of 256.
i64 width_of(const ConfigFields& ffn, i64 hidden) {
  constexpr std::string_view kKey = "ffn_mult";
  if (!ffn.has(kKey)) throw ffn.error(kKey, "is missing").expected("a number");
  double width = 2 * ffn.real_or(kKey, 0) * static_cast<double>(hidden) / 3;
  if (!(width >= 1) || width > static_cast<double>(ConfigFields::kLargest - 256))
    throw ffn.error(kKey, "is out of range")
        .expected("a number that gives an MLP a width")
        .found(ffn.real_or(kKey, 0));
  return round_up(static_cast<i64>(width), 256, "the width of the MLP");
}

std::vector<Block> blocks_of(const ConfigFields& c, const TowerConfig& text, i64 layers) {
  const JsonValue* list = c.find(kBlocks);
  if (!list || !list->is(JsonType::kArray))
    throw c.error(kBlocks, list ? "is of the wrong type" : "is missing").expected("an object for each layer");
  const auto& items = list->array(kBlocks);
  if (std::ssize(items) != layers)
    throw c.error(kBlocks, "does not have one entry for each layer").expected(layers).found(items.size());
  std::vector<Block> blocks;
  for (const JsonValue& item : items) {
    std::string at = cat(c.key(kBlocks), "[", blocks.size(), "]");
    if (!item.is(JsonType::kObject))
      throw c.error(at, "is of the wrong type").expected("an object").found(item.summary());
    ConfigFields block(item, at + "."), attention = block.object("attention"), ffn = block.object("ffn");
    Block& b = blocks.emplace_back();
    if (is_there(attention)) b.groups = groups_of(attention, text.heads);
    if (is_there(ffn)) b.ffn = width_of(ffn, text.hidden);
  }
  return blocks;
}

}  // namespace

// The first layer that has keys, and the first that has an MLP, give the sizes of the model; layers that
// are alike share their sizes.
void read_deci_layers(const ConfigFields& c, ModelConfig& m, i64) {
  const std::vector<Block> blocks = blocks_of(c, m.text, layer_count(c, "num_hidden_layers"));
  auto first = [&](std::optional<i64> Block::*number, i64 otherwise) {
    for (const Block& b : blocks)
      if (b.*number) return *(b.*number);
    return otherwise;
  };
  m.text.kv_groups = first(&Block::groups, m.text.heads);
  m.text.ffn = first(&Block::ffn, m.text.hidden);
  std::map<std::pair<i64, i64>, i32> known{{{m.text.kv_groups, m.text.ffn}, 0}};
  for (const Block& b : blocks) {
    TowerConfig t = m.text;
    t.layers.clear();
    t.kv_groups = b.groups.value_or(t.kv_groups);
    t.ffn = b.ffn.value_or(t.ffn);
    auto [at, fresh] = known.try_emplace({t.kv_groups, t.ffn}, std::ssize(m.layer_sizes) + 1);
    if (fresh) m.layer_sizes.push_back(std::move(t));
    m.text.layers.push_back(
        {b.groups ? Mixer::kAttention : Mixer::kNone, b.ffn ? Ffn::kDense : Ffn::kNone, at->second});
  }
}

}  // namespace mckpt::impl
