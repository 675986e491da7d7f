// Which modules of a model a config of PEFT is for: PEFT gives these factors, and ignores those that an
// adapter has for others.
//
//   "target_modules": ["q_proj", "v_proj"]      modules whose names end so
//   "target_modules": ".*layers.[02].*_proj"    modules whose whole names match
//   "layers_to_transform": [0, 2]               of a list: only in these layers
//   "exclude_modules", "modules_to_save"        these are not
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class JsonValue;
class ModulePattern;

// A list of names, or one expression. A value.
struct ModuleNames {
  bool given = false;  // also an empty list, which means no module
  std::vector<std::string> names{};
  std::shared_ptr<const ModulePattern> whole{};  // of a text; null: names, or an expression that is not read
  bool unread = false;                           // whether a module is meant is not known

  // Nothing: it is not known.
  std::optional<bool> match(std::string_view module) const;
};

struct TargetRules {
  ModuleNames targets, excluded;
  std::vector<i64> layers{};               // layers_to_transform; empty: all
  std::vector<std::string> layer_lists{};  // layers_pattern; empty: any
  std::vector<std::string> saved{};        // modules_to_save

  // Whether PEFT gives the module factors, by its name in the model; nothing: it is not known.
  std::optional<bool> targeted(std::string_view module) const;
  // Whether the module, or one that it is in, is saved whole.
  bool saved_whole(std::string_view module) const;
};

// pre: an object. Throws kBadConfig for entries of another type.
TargetRules read_targets(const JsonValue& config);

}  // namespace mckpt::impl
