// Every setting has a line, also one with its default, so that two identities have the same lines.
#include "convert/plan/setting_identity.h"

#include "convert/keys/name_rules.h"
#include "convert/keys/value_options.h"
#include "core/base/text.h"
#include "core/fsdp/grid.h"
#include "io/output/plan_identity.h"
#include "mappings/fsdp/setup.h"
#include "mappings/model/run_setup.h"

namespace mckpt::impl {
namespace {

std::string params_text(const ParamsDtype& type) {
  if (type.kind == ParamsDtype::kGiven) return std::string(dtype_name(type.given));
  return type.kind == ParamsDtype::kConfig ? "auto" : "none";
}

std::string units_text(const FsdpSetup& fsdp) {
  return cat(fsdp.transformer_units ? "TransformerLayer" : "", " ", fsdp.mamba_units ? "MambaLayer" : "", " ",
             fsdp.hybrid_stack_units ? "HybridStack" : "");
}

}  // namespace

void set_run(PlanIdentity& identity, const Grid& grid, const FsdpSetup& fsdp, const FrozenNames& frozen) {
  identity.set("tp", grid.tp).set("cp", grid.cp).set("ep", grid.ep).set("etp", grid.etp).set("pp", grid.pp);
  identity.set("dp", grid.dp).set("hsdp", grid.hsdp);
  identity.set("hsdp_outer", grid.outer == HsdpOuter::kShard ? "shard" : "replicate");
  identity.set("engine", engine_name(fsdp.engine)).set("strategy", strategy_name(fsdp.strategy));
  identity.set("fsdp_unit", units_text(fsdp));
  identity.set("fsdp_units_for", fsdp.unit_scope == UnitScope::kFullShardOnly ? "full" : "sharded");
  identity.set("fp8_recipe", fp8_recipe_name(fsdp.fp8));
  identity.set("bucket_size", fsdp.bucket_items).set("freeze", frozen.text());
}

void set_vocab(PlanIdentity& identity, const VocabChoice& vocab) {
  identity.set("vocab_size", vocab_word(vocab));
}

void set_values(PlanIdentity& identity, const ValueOptions& values) {
  set_vocab(identity, values.vocab);
  identity.set("params_dtype", params_text(values.params_dtype));
  identity.set("dtype", values.dtype ? dtype_name(*values.dtype) : "keep");
  identity.set("dtype_rule", values.rules.text());
}

}  // namespace mckpt::impl
