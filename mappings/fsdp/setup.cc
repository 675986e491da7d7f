// Compares with the default.
#include "mappings/fsdp/setup.h"

#include "core/fsdp/grid.h"
#include "core/fsdp/param_groups.h"

namespace mckpt::impl {

std::string_view fp8_recipe_name(Fp8Recipe recipe) {
  static constexpr std::string_view kNames[] = {"none", "tensorwise", "delayed", "blockwise", "mxfp8"};
  return kNames[static_cast<int>(recipe)];
}

std::string_view option_of_fsdp(const FsdpSetup& f, const Grid& grid) {
  const FsdpSetup usual;
  if (f.engine != usual.engine) return "`engine`";
  if (f.strategy != usual.strategy) return "`strategy`";
  if (f.unit_scope != usual.unit_scope) return "`units_for`";
  if (!f.transformer_units || !f.mamba_units || f.hybrid_stack_units) return "`fsdp_unit`";
  const bool own_cut = f.bucket_items != usual.bucket_items &&
                       f.bucket_items != default_bucket_items(f.engine, grid.dp * grid.cp);
  return own_cut ? "`bucket_size`" : "";
}

}  // namespace mckpt::impl
