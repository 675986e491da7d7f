// Each number has the spellings under which configs have it; the first that is there counts.
#include "hf/config/tower_numbers.h"

#include <initializer_list>
#include <string_view>

#include "hf/config/fields.h"
#include "io/json/json.h"

namespace mckpt::impl {
namespace {

i64 number(const JsonValue* object, std::initializer_list<std::string_view> keys) {
  for (std::string_view key : keys) {
    const JsonValue* value = object ? object->find(key) : nullptr;
    if (!value || !value->is(JsonType::kNumber) || !value->is_integer()) continue;
    const std::string& text = value->number(key);
    if (text.size() > 9) continue;  // below ConfigFields::kLargest, and no product of two leaves 63 bits
    if (i64 n = value->integer(key); n > 0 && n <= ConfigFields::kLargest) return n;
  }
  return 0;
}

const JsonValue* part(const JsonValue& config, std::string_view key) {
  const JsonValue* value = config.find(key);
  return value && value->is(JsonType::kObject) ? value : nullptr;
}

}  // namespace

TowerNumbers tower_numbers(const JsonValue& config) {
  const JsonValue* text = part(config, "text_config");
  if (!text) text = &config;
  const JsonValue* vision = part(config, "vision_config");
  TowerNumbers out;
  out.layers = number(text, {"num_hidden_layers"});
  out.heads = number(text, {"num_attention_heads"});
  out.kv_heads = number(text, {"num_key_value_heads"});
  if (out.kv_heads == 0) out.kv_heads = out.heads;
  out.head_dim = number(text, {"head_dim"});
  if (const i64 hidden = number(text, {"hidden_size"});
      out.head_dim == 0 && out.heads > 0 && hidden % out.heads == 0)
    out.head_dim = hidden / out.heads;
  out.vision_heads = number(vision, {"num_attention_heads", "num_heads", "vt_num_attention_heads"});
  out.vision_hidden = number(vision, {"hidden_size", "vt_hidden_size"});
  out.patch_side = number(vision, {"patch_size"});
  out.patch_frames = number(vision, {"temporal_patch_size", "patch_temporal"});
  return out;
}

}  // namespace mckpt::impl
