// Megatron-FSDP v2 saves the main weight of each parameter, trained or frozen, and main weights are fp32
// under every option.
#include "convert/dialects/fsdp/run.h"

#include "convert/keys/value_options.h"
#include "core/base/error.h"

namespace mckpt::impl {

void follow_engine(const FsdpSetup& fsdp, RunSetup& run, StoredTypes& types) {
  // Weights in 8 bits have main weights, and a run has these of all parameters that it trains.
  if (fsdp.fp8 != Fp8Recipe::kNone && !types.main_dtype) types.main_dtype = DType::kF32;
  if (!fsdp.saves_state_dict()) return;
  run.whole = types.frozen_have_main = true;
  types.main_dtype = DType::kF32;
}

void refuse_other_types(const FsdpSetup& fsdp, const ValueOptions& values) {
  if (!fsdp.saves_state_dict()) return;
  bool other = values.dtype && *values.dtype != DType::kF32;
  if (!other && values.rules.empty()) return;
  throw Error(Code::kUsage, "Megatron-FSDP v2 stores every parameter as fp32")
      .found(other ? cat("`dtype` ", dtype_name(*values.dtype)) : std::string("a `dtype_rule`"))
      .help("leave it out; `params_dtype` bf16 gives the values that a run in bf16 has");
}

}  // namespace mckpt::impl
