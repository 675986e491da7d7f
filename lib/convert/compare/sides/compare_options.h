// How two checkpoints are compared.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "convert/compare/checks/types.h"
#include "convert/compare/differences/counting.h"
#include "convert/keys/value_options.h"
#include "convert/open/options.h"
#include "core/base/int.h"
#include "io/choice/tensor_choice.h"

namespace mckpt::impl {

// Plain values.
struct CompareOptions {
  CheckpointOptions opening{};               // of the checkpoint, or of both; its ranks are the source's
  std::optional<i64> path_tp{}, path_etp{};  // ranks that wrote the tested side, if it does not record them
  const char *path_tp_setting = "path_tp", *path_etp_setting = "path_etp";  // the caller's names of these two
  ParamsDtype params_dtype{};  // the type through which an import passes the values of a model
  TypeClaim types{};           // the types that the conversion was asked for
  // The dict that holds the model, for a side with several that may; empty: it is found
  std::string model_dict{};
  bool weights_only = false;  // the conversion left the states of the optimizer out
  bool any_type = false;  // floats of other types are compared after a cast to the type of the tested side
  Counting counting{};
  // Tensors by their names on the tested side: nothing else is compared, neither objects nor files
  TensorChoice choice{};
  int threads = 1;
};

// VerifyReport::compared_as of two sides whose tensors have the same names.
inline constexpr std::string_view kComparedByName = "tensors of the same names";

}  // namespace mckpt::impl
