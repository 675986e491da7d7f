// What a conversion does to values and types: options that all conversions share.
#pragma once

#include <optional>

#include "convert/keys/name_rules.h"
#include "core/base/int.h"
#include "core/items/dtype.h"
#include "mappings/config.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {

// The type that parameters have while the model runs; every value passes through it, as in a real training run.
struct ParamsDtype {
  enum Kind : u8 {
    kSource,  // each parameter keeps its source's type
    kConfig,  // the type that config.json gives, or fp32
    kGiven
  } kind = kSource;
  DType given = DType::kF32;

  std::optional<DType> of(const ModelConfig& model) const {
    if (kind == kSource) return std::nullopt;
    return kind == kGiven ? given : model.dtype.value_or(DType::kF32);
  }
};

struct ValueOptions {
  VocabChoice vocab{};           // rows of the vocabulary
  ParamsDtype params_dtype{};    // the type at run time
  std::optional<DType> dtype{};  // the type of what is listed or written; none: as it is
  DtypeRules rules{};            // the types of single tensors
};

}  // namespace mckpt::impl
