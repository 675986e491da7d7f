// One walk over the config.
#include "hf/config/numbers.h"

#include <string_view>

#include "core/base/text.h"
#include "hf/config/fields.h"
#include "io/json/json.h"

namespace mckpt::impl {
namespace {

void add(ConfigNumbers& out, std::string_view front, const JsonMember& member) {
  if (!member.value.is_integer()) return;
  const std::string& text = member.value.number(member.name);
  if (text.size() > 9) return;  // below ConfigFields::kLargest, and no product of two leaves 63 bits
  if (const i64 n = member.value.integer(member.name); n >= 0 && n <= ConfigFields::kLargest)
    out[cat(front, member.name)] = n;
}

}  // namespace

ConfigNumbers config_numbers(const JsonValue& config) {
  ConfigNumbers out;
  if (!config.is(JsonType::kObject)) return out;
  for (const JsonMember& member : config.object("config.json")) {
    add(out, "", member);
    if (!member.value.is(JsonType::kObject)) continue;
    const std::string front = cat(member.name, ".");
    for (const JsonMember& inner : member.value.object(member.name)) add(out, front, inner);
  }
  return out;
}

}  // namespace mckpt::impl
