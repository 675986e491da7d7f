// config.json of a Hugging Face model: the text becomes the numbers that the mapping rules need, and those
// that the args of a training run state. Nothing else of the config is used: it is copied unchanged into a
// checkpoint's assets.
//
//   {"model_type": "qwen3", "hidden_size": 16, "num_attention_heads": 4, ...}   -->   family qwen3, text.hidden 16
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hf/config/run_entries.h"
#include "mappings/config.h"

namespace mckpt::impl {

struct Family;
struct MapFile;

// The contents of a config.
struct HfConfig {
  ModelConfig model;
  const Family* family = nullptr;    // a constant of the program; null for a map without a base
  std::string architecture;          // architectures[0]; "" if the config has none
  std::string transformers_version;  // of the program that wrote the config; "" if it is not given
  RunEntries run;                    // what only the args of a training run state
  std::vector<std::string> doubts;   // sentences about entries: check_entry_limits()
  std::string quantized;             // the words for a config that declares quantised weights; else ""
};

// `text` may come from anyone: depth and numbers are limited. Throws kBadJson, kBadConfig, kUnknownModel,
// kUnsupportedModel, kQuantized; none of them names the file. `shapes_only`: no data will be read, so a
// method of quantisation that is not decoded is not refused: the model has the shapes that the config gives.
// `map` chooses the family and changes entries (mappings/map_file/map.h); it throws kBadMap for a base that
// does not exist.
HfConfig read_hf_config(std::string_view text, bool shapes_only = false, const MapFile* map = nullptr);

}  // namespace mckpt::impl
