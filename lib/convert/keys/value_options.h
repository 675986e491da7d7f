// The changes of a conversion to values and types: options that all conversions share. The types apply one
// after the other:
//
//   source's type  --params_dtype-->  type at run time  --dtype, rules-->  type that is written
//   float32                           bfloat16                             float32        values rounded to bfloat16
#pragma once

#include <optional>

#include "convert/keys/name_rules.h"
#include "core/base/int.h"
#include "core/items/dtype.h"
#include "mappings/config.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {

// The type that parameters have while the model runs. Every value passes through it, as in a real training
// run, so a narrower type rounds the values even if the result is wide.
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

// The options of one conversion. A default object keeps all values and types, and pads the vocabulary only
// where its rows do not divide.
struct ValueOptions {
  VocabChoice vocab{VocabChoice::kAuto, 0};  // rows of the vocabulary
  ParamsDtype params_dtype{};                // the type at run time
  std::optional<DType> dtype{};              // the type of what is listed or written; none: as it is
  DtypeRules rules{};                        // the types of single tensors
};

}  // namespace mckpt::impl
