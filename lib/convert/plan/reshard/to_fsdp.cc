// A folder with config.json and safetensors is a model without a look at its tensors. Types, names and groups
// of layers follow a checkpoint of Megatron, whose states must match its weights bit for bit.
#include "convert/plan/reshard/to_fsdp.h"

#include "convert/keys/value_options.h"
#include "convert/open/open.h"
#include "convert/plan/conversion.h"
#include "convert/plan/reshard/reshard.h"
#include "core/base/error.h"
#include "io/dcp/keys/dialect.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// The first of the options that describe a model; "" if none is given.
std::string_view option_of_model(const HfToFsdpOptions& o) {
  if (o.values.dtype) return "`dtype`";
  if (!o.values.rules.empty()) return "`dtype_rule`";
  if (o.values.params_dtype.kind != ParamsDtype::kSource) return "`params_dtype`";
  return o.hybrid_pattern.empty() ? "" : "`hybrid_pattern`";
}

// The first of the options that describe a checkpoint of Megatron.
std::string_view option_of_sharded(const ToFsdpOptions& o) {
  if (o.from.rank_states) return "`rank_states`";
  if (o.from.checkpoint.source_tp) return "`source_tp`";
  if (o.from.checkpoint.source_etp) return "`source_etp`";
  if (o.from.source_ep) return "`source_ep`";
  if (o.from.source_hsdp) return "`source_hsdp`";
  if (o.from.checkpoint.any_model) return "`any_model`";
  return o.modules.empty() ? "" : "`fsdp_module`";
}

Conversion plan_model(ToFsdpOptions& o) {
  if (std::string_view option = option_of_sharded(o); !option.empty())
    throw Error(Code::kUsage,
                cat(option, " is for checkpoints of Megatron, and the source has the names of a model"))
        .file(o.model.source)
        .help(cat("leave ", option, " out"));
  o.model.assets = o.from.checkpoint.assets;
  o.model.accept = o.from.checkpoint.accept;
  o.model.model = o.from.checkpoint.model;
  return plan_hf_to_fsdp(o.model);
}

Conversion plan_sharded(std::unique_ptr<Store> source, const ToFsdpOptions& o) {
  const HfToFsdpOptions& m = o.model;
  if (source->driver().dialect == DcpDialect::kPlain && o.from.checkpoint.any_model)
    throw Error(Code::kUnknownFormat,
                "the names follow no convention, so they have no counterparts in fsdp_dtensor")
        .file(source->root())
        .help("`mckpt convert reshard` keeps the names, on another number of ranks");
  refuse_model_dict(m.model_dict, m.source);
  if (std::string_view option = option_of_model(m); !option.empty())
    throw Error(
        Code::kUsage,
        cat(option,
            " is for models, and the source is a checkpoint of Megatron, whose names and types stay: states of the optimizer match their weights bit for bit"))
        .file(source->root())
        .found(format_text(source->format()))
        .help(
            cat("leave ", option, " out; `mckpt export` makes a model of it, with the types that you give"));
  return plan_sharded_to_fsdp(std::move(source), {.source = m.source,
                                                  .target = m.target,
                                                  .from = o.from,
                                                  .grid = m.grid,
                                                  .fsdp = m.fsdp,
                                                  .frozen = m.frozen,
                                                  .keep_fp8 = o.keep_fp8,
                                                  .modules = o.modules,
                                                  .vocab = m.values.vocab,
                                                  .iteration = m.iteration,
                                                  .threads = m.threads,
                                                  .rank = m.rank});
}

// The source if it is a checkpoint of Megatron. Null for all others, and for what cannot be opened: the
// planner of models says why.
std::unique_ptr<Store> open_sharded(const ToFsdpOptions& o) {
  const OpenOptions& files = o.from.checkpoint.model.files;
  if (is_model_folder(o.model.source, files)) return nullptr;
  std::unique_ptr<Store> store;
  try {
    store = open_store(o.model.source, files);
  } catch (const Error&) {
    return nullptr;
  }
  const FormatFamily family = format_family(store->format());
  if (family != FormatFamily::kDcp && family != FormatFamily::kMegatron) return nullptr;
  const bool as_it_is = family == FormatFamily::kDcp && o.from.checkpoint.any_model;
  return as_it_is || !has_own_names(*store) ? std::move(store) : nullptr;
}

}  // namespace

Conversion plan_to_fsdp(ToFsdpOptions options) {
  std::unique_ptr<Store> store = options.model_alone ? nullptr : open_sharded(options);
  return store ? plan_sharded(std::move(store), options) : plan_model(options);
}

}  // namespace mckpt::impl
