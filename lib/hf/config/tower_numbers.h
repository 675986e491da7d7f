// The few numbers of a config.json that turn one layout of a model's rows into another, read of any config,
// whether a table knows its model or not:
//
//   {"text_config": {"num_attention_heads": 4, "head_dim": 6, ...}, "vision_config": {"num_heads": 2, ...}}
//
// A config that has no `text_config` describes a text model.
#pragma once

#include "core/base/int.h"

namespace mckpt::impl {

class JsonValue;

// Zero: the config does not say it.
struct TowerNumbers {
  i64 layers = 0, heads = 0, kv_heads = 0, head_dim = 0;  // of the text model
  i64 vision_heads = 0, vision_hidden = 0;
  i64 patch_side = 0, patch_frames = 0;  // of the vision tower
};

// Entries of another type or out of range count as absent.
TowerNumbers tower_numbers(const JsonValue& config);

}  // namespace mckpt::impl
