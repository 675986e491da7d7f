// config.json of a Hugging Face model -> the numbers that mappings need.
#pragma once

#include <string>
#include <string_view>

#include "core/base/int.h"
#include "mappings/config.h"

namespace mckpt::impl {

struct Family;

struct HfConfig {
  ModelConfig model;
  const Family* family = nullptr;
  std::string architecture;          // architectures[0]; "" when the config has none
  std::string transformers_version;  // that wrote it
  i64 max_positions = 0;             // 0: the config does not say
};

// Throws kBadJson, kBadConfig, kUnknownModel, kUnsupportedModel, kQuantized; none of them names the file.
HfConfig read_hf_config(std::string_view text);

}  // namespace mckpt::impl
