// PEFT writes sets as lists, in an order that is another in each run.
#include "hf/adapter/compared_config.h"

#include <algorithm>
#include <utility>

#include "hf/adapter/lora/config_entries.h"
#include "io/json/json.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kTargets = "target_modules";
constexpr std::string_view kSets[] = {kTargets, "exclude_modules", "target_parameters", "modules_to_save"};

JsonValue sorted(const JsonValue& list, std::string_view key) {
  JsonValue::Array out = list.array(key);
  if (!std::ranges::all_of(out, [](const JsonValue& v) { return v.is(JsonType::kString); })) return list;
  std::ranges::sort(out, {}, [&](const JsonValue& v) -> const std::string& { return v.string(key); });
  return JsonValue(JsonValue::Data(std::move(out)));
}

}  // namespace

JsonValue comparable_config(std::string_view text) {
  JsonValue config = parse_config(text);
  if (!config.is(JsonType::kObject)) return config;
  JsonValue::Object out;
  for (const JsonMember& m : config.object("adapter_config.json")) {
    // No modules is not the same as those that PEFT chooses.
    if (m.name == kTargets ? m.value.is(JsonType::kNull) : says_nothing(m.name, m.value)) continue;
    const bool set = std::ranges::find(kSets, m.name) != std::end(kSets) && m.value.is(JsonType::kArray);
    out.push_back({m.name, set ? sorted(m.value, m.name) : m.value});
  }
  return JsonValue(JsonValue::Data(std::move(out)));
}

}  // namespace mckpt::impl
