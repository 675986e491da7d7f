// An adapter may have the embedding and the output layer with other rows than the base.
#include "hf/adapter/lora/merged_checks.h"

#include <algorithm>
#include <optional>
#include <span>

#include "core/base/error.h"
#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "hf/adapter/lora/modules.h"
#include "hf/adapter/lora/pairing.h"
#include "hf/adapter/lora/parameters.h"
#include "hf/adapter/lora/vocabulary.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

void check_type(const Store& base, const AdaptedTensor& a) {
  if (is_computed_type(base.dtype(a.from))) return;
  throw Error(Code::kUnsupportedTensor, "the adapter changes a tensor of a type that is not computed with")
      .tensor(base.name(a.from))
      .expected("float32, bfloat16 or float16")
      .found(dtype_name(base.dtype(a.from)));
}

void refuse_other_rows(std::string_view name, std::span<const i64> dims, i64 rows) {
  if (!dims.empty() && dims[dims.size() == 2 && dims[0] == 1 ? 1 : 0] == rows) return;
  throw Error(Code::kSourceShape,
              "the adapter changes the number of rows of one tensor of the vocabulary, and not of another")
      .tensor(name)
      .expected(cat(rows, " rows, as the adapter has them"))
      .found(dims_to_string(dims))
      .help("PEFT saves both with save_embedding_layers=True after resize_token_embeddings");
}

// An output layer of another part of the model, such as an image encoder, has rows of its own.
bool is_head_of_tokens(std::string_view name, std::span<const i64> dims, i64 tokens) {
  return is_head_weight(name) && (name.find('.') == name.rfind('.') || (!dims.empty() && dims[0] == tokens));
}

// A number for each token, which resize_token_embeddings() adds to, too. Sizes alone do not show it: a model
// of characters may be as wide as its vocabulary. Where the weight is tied, the folder may have the bias
// alone.
bool is_bias_of_tokens(const BaseTensors& base, std::string_view name, std::span<const i64> dims,
                       i64 tokens) {
  constexpr std::string_view kBias = ".bias";
  if (name.ends_with("final_logits_bias")) return true;
  if (!name.ends_with(kBias) || dims.size() != 1 || dims[0] != tokens) return false;
  const std::string weight = cat(name.substr(0, name.size() - kBias.size()), ".weight");
  return is_head_weight(weight) || base.find(weight) < 0;
}

}  // namespace

void check_merged(const BaseTensors& base, const Store& adapter, const AdaptedModel& model,
                  const Vocabulary& vocabulary) {
  const Store& store = base.store();
  auto dims_of = [&](const AdaptedTensor& a) {
    return a.replaced >= 0 ? adapter.dims(a.replaced) : store.dims(a.from);
  };
  auto adapted = [&](i64 t) { return std::ranges::find(model.tensors, t, &AdaptedTensor::tensor); };
  std::optional<i64> rows;
  i64 tokens = 0;  // of the base
  for (const AdaptedTensor& a : model.tensors) {
    check_type(store, a);
    if (!std::ranges::equal(dims_of(a), store.dims(a.from)))
      rows = dims_of(a)[0], tokens = store.dims(a.from)[0];
  }
  if (!rows) return;
  for (i64 t = 0; t < store.tensor_count(); t++) {
    const std::string_view name = store.name(t);
    const std::span<const i64> dims = store.dims(t);
    if (!is_embedding_weight(name) && !is_head_of_tokens(name, dims, tokens) && !vocabulary.tied(name) &&
        !is_bias_of_tokens(base, name, dims, tokens))
      continue;
    auto at = adapted(t);
    refuse_other_rows(name, at == model.tensors.end() ? dims : dims_of(*at), *rows);
  }
  for (const AdaptedTensor& a : model.tensors)
    if (!a.name.empty()) refuse_other_rows(a.name, dims_of(a), *rows);
}

}  // namespace mckpt::impl
