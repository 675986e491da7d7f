// Names end at a dot. Expressions that Python and C++ may read differently are not read, and then nothing is
// claimed.
#include "hf/adapter/lora/targets.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/adapter/lora/lora_config.h"
#include "io/json/json.h"

namespace mckpt::impl {
namespace {

bool ends_in(std::string_view module, std::string_view name) {
  return module == name || (module.size() > name.size() && module.ends_with(name) &&
                            module[module.size() - name.size() - 1] == '.');
}

std::vector<std::string> texts(const JsonValue& value, std::string_view key) {
  std::vector<std::string> out;
  if (value.is(JsonType::kString)) return {value.string(key)};
  for (const JsonValue& v : value.array(key)) out.push_back(v.string(key));
  return out;
}

const JsonValue* entry(const JsonValue& config, std::string_view key) {
  const JsonValue* v = config.find(key);
  return v && !v->is(JsonType::kNull) ? v : nullptr;
}

ModuleNames names_of(const JsonValue& config, std::string_view key) {
  ModuleNames out;
  const JsonValue* v = entry(config, key);
  if (!v) return out;
  if (!v->is(JsonType::kString)) {
    out.names = texts(*v, key);
    out.given = true;
    return out;
  }
  out.given = true;
  const std::string text = v->string(key);
  // PEFT puts the names in its place when it finds them; programs of their own may not.
  out.unread = text == "all-linear";
  try {
    if (!out.unread) out.whole = std::make_shared<const ModulePattern>(text, ModulePattern::kWhole);
  } catch (const Error&) {
    out.unread = true;
  }
  return out;
}

// The number of the layer that a module is in: of the first list of layers that is allowed; nothing: none.
std::optional<i64> layer_of(std::string_view module, const std::vector<std::string>& lists) {
  std::size_t begin = 0;
  std::string_view before;
  for (std::size_t dot; (dot = module.find('.', begin)) != module.npos; begin = dot + 1) {
    std::string_view part = module.substr(begin, dot - begin);
    const bool number = !part.empty() && part.size() < 10 &&
                        std::ranges::all_of(part, [](char c) { return c >= '0' && c <= '9'; });
    // Without a pattern PEFT wants something in front of the list.
    const bool list =
        lists.empty() ? begin > before.size() + 1 : std::ranges::find(lists, before) != lists.end();
    if (number && begin > 0 && list) return std::stoll(std::string(part));
    before = part;
  }
  return std::nullopt;
}

}  // namespace

std::optional<bool> ModuleNames::match(std::string_view module) const {
  if (unread) return std::nullopt;
  try {
    if (whole) return whole->matches(module);
  } catch (const Error&) {
    return std::nullopt;
  }
  return std::ranges::any_of(names, [&](const std::string& name) { return ends_in(module, name); });
}

bool TargetRules::saved_whole(std::string_view module) const {
  for (; !module.empty(); module = module.substr(0, std::min(module.rfind('.'), module.size()))) {
    if (std::ranges::any_of(saved, [&](const std::string& name) { return ends_in(module, name); }))
      return true;
    if (module.find('.') == module.npos) break;
  }
  return false;
}

std::optional<bool> TargetRules::targeted(std::string_view module) const {
  if (!targets.given) return std::nullopt;  // PEFT's own choice for the type of the model
  if (saved_whole(module)) return false;
  if (excluded.given) {
    const std::optional<bool> out = excluded.match(module);
    if (!out) return std::nullopt;
    if (*out) return false;
  }
  const std::optional<bool> in = targets.match(module);
  if (!in || !*in || layers.empty() || targets.whole) return in;
  // A module that is named in full is meant in any layer.
  if (std::ranges::find(targets.names, module) != targets.names.end()) return true;
  const std::optional<i64> layer = layer_of(module, layer_lists);
  return layer && std::ranges::find(layers, *layer) != layers.end();
}

TargetRules read_targets(const JsonValue& config) {
  TargetRules out;
  out.targets = names_of(config, "target_modules");
  out.excluded = names_of(config, "exclude_modules");
  if (const JsonValue* v = entry(config, "layers_to_transform")) {
    if (v->is(JsonType::kNumber))
      out.layers.push_back(v->integer("layers_to_transform"));
    else
      for (const JsonValue& layer : v->array("layers_to_transform"))
        out.layers.push_back(layer.integer("layers_to_transform"));
  }
  if (const JsonValue* v = entry(config, "layers_pattern")) out.layer_lists = texts(*v, "layers_pattern");
  std::erase(out.layer_lists, "");
  if (const JsonValue* v = entry(config, "modules_to_save")) out.saved = texts(*v, "modules_to_save");
  return out;
}

}  // namespace mckpt::impl
