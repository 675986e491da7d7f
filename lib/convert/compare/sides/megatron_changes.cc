#include "convert/compare/sides/megatron_changes.h"

#include <optional>
#include <string>

#include "convert/compare/sides/compare_options.h"
#include "convert/keys/main_type.h"
#include "convert/open/checkpoint.h"
#include "convert/open/own_model.h"
#include "convert/own/names.h"
#include "convert/own/saved_states.h"
#include "core/base/error.h"
#include "core/items/dtype.h"
#include "hf/folder/name_words.h"
#include "io/dcp/keys/key.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr const char* kWeightsOnly = "weights only";
constexpr const char* kNoPlace = "Megatron-FSDP v2 has no place for them";

}  // namespace

Changes changes_under_own_names(const Store& source, const CompareOptions& options) {
  if (!options.weights_only) return {};
  return {.left_out = [states = SavedStates(source)](std::string_view name) {
    return states.has(name) ? kWeightsOnly : "";
  }};
}

Changes changes_under_own_names(const Store& tested, const Store& source, const CompareOptions& options) {
  Changes out = changes_under_own_names(source, options);
  if (!has_own_names(tested) || !has_own_names(source)) return out;
  out.type = [&source, cast = casts_to(tested, source).type](i64 t) {
    return is_of_states(source.name(t)) ? source.dtype(t) : cast(t);
  };
  return out;
}

std::vector<bool> types_asked_of(const Store& tested, const Store& source, const CompareOptions& options) {
  if (options.types.kind != TypeClaim::kGiven || !has_own_names(tested) || !has_own_names(source)) return {};
  try {
    return takes_type(source);
  } catch (const Error& e) {
    if (e.code() == Code::kReadFailed) throw;
    return {};
  }
}

Changes changes_under_keys(const CheckpointModel& to, const CheckpointModel& from, const Into& into,
                           const CompareOptions& options) {
  Changes out = changes_under_own_names(from.store(), options);
  if (into.ranks_of_weights)
    out.left_out = [](std::string_view name) -> std::string {
      bool written = model_key(name) || name == "args" || name == "checkpoint_version" || name == "iteration";
      return written ? "" : kWeightsOnly;
    };
  if (into.v2) {
    out.left_out = [weights_only = options.weights_only](std::string_view name) -> std::string {
      if (is_of_optimizer(name)) return weights_only ? kWeightsOnly : "";
      return model_key(name) ? "" : kNoPlace;
    };
    out.type = [&from](i64 tensor) {
      std::optional<std::string> key = model_key(from.store().name(tensor));
      DType type = from.store().dtype(tensor);
      return key ? main_type(from.keys(), *key, type) : type;
    };
  }
  // Weights have whatever type they have here; the types that were asked for are a check of their own.
  if (into.casts)
    out.type = [&to, &from](i64 tensor) {
      if (tensor >= from.store().tensor_count()) return DType::kF32;
      std::optional<std::string> key = model_key(from.store().name(tensor));
      i32 own = key ? to.tensor_of_key(*key) : -1;
      return own >= 0 ? to.store().dtype(own) : from.store().dtype(tensor);
    };
  return out;
}

}  // namespace mckpt::impl
