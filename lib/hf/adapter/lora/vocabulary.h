// The embedding of tokens and the output layer of a base, which are one tensor in many models. PEFT wraps the
// two as modules of their own, and what it makes of one tensor depends on the config:
//
//   factors of either                     both keep one tensor, to which the products are added in turn
//   modules_to_save has one of them       the output layer gets values of its own: a tensor that the base has not
//   the same with ensure_weight_tying     one tensor, which is replaced
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

class BaseTensors;
struct BaseFacts;
struct LoraConfig;

// Whether the name belongs to the weight of such a module, in memory or on disk.
bool is_embedding_weight(std::string_view name);
bool is_head_weight(std::string_view name);

class Vocabulary {
 public:
  Vocabulary(const BaseTensors& base, const BaseFacts& facts, const LoraConfig& config);

  // The embedding that is the output layer, too: a tensor of the base. -1: they are two, or it is not known.
  i64 tied() const { return tied_; }
  // Whether the adapter gives the output layer values of its own.
  bool unties() const { return unties_; }

 private:
  i64 tied_ = -1;
  bool unties_ = false;
};

}  // namespace mckpt::impl
