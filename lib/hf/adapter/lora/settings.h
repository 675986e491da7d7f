// Whether the settings of adapter_config.json are those by which its tensors were made, as far as PEFT looks
// when it loads an adapter.
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class BaseTensors;
struct BaseFacts;
struct LoraConfig;
struct OpenOptions;

// The parts of the adapter: which tensors of the base have factors, by number, and the names of the tensors
// that it replaces.
struct AdaptedParts {
  std::vector<bool> factors;
  std::vector<std::string> replaced;
};

// Throws kUnaccounted for modules_to_save of which the adapter has no tensor, as PEFT does. Modules that the
// config chooses, and that have no factors, are named in the sentence that is returned, which is empty
// without any: PEFT warns of them and leaves them as they are.
std::string check_settings(const LoraConfig& config, const BaseTensors& base, const AdaptedParts& parts);

// Whether the base at `path` is the one that the config names, by its path, its class and its sizes: what
// differs becomes a note, or a warning where other classes or sizes show that it is another model.
struct OtherBase {
  std::string note, warning;
};
OtherBase other_base(const LoraConfig& config, const BaseFacts& facts, const std::string& path,
                     const OpenOptions& opening);

}  // namespace mckpt::impl
