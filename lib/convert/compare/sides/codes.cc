// A quantised result and the values of its source, quantised again. The result is its own pattern: it says
// which tensors are quantised and how, and a block keeps the scale that is there only if codes with that
// scale stand for exactly the source's values.
#include "convert/compare/sides/compare_options.h"
#include "convert/compare/sides/kinds.h"
#include "convert/open/checkpoint.h"
#include "convert/open/megatron_names.h"
#include "convert/open/open.h"
#include "convert/plan/quantized/exported_values.h"
#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "hf/quantized/dequantized_store.h"
#include "hf/quantized/quantized_store.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// The values that a conversion quantises: the tensors of a folder, or the tensors that an export of a
// checkpoint writes.
std::unique_ptr<Store> values_of(const std::string& source, const CompareOptions& options) {
  std::unique_ptr<Store> store = open_values(source, options.opening.model.files);
  if (!has_megatron_names(*store)) return store;
  OpenAs how{.source = source, .how = options.opening};
  how.how.records_apart = true;
  Opened checkpoint = open_sharded(std::move(store), how);
  const std::vector<DType> types = checkpoint.sharded->original_types();
  return std::make_unique<ExportedValues>(std::move(checkpoint), types);
}

bool is_misfit(Code code) {
  return code == Code::kUnaccounted || code == Code::kSourceShape || code == Code::kBadCast;
}

}  // namespace

std::unique_ptr<Store> quantized_like(const SidePaths& paths, const CompareOptions& options) {
  try {
    return QuantizedStore::like(values_of(paths.source, options),
                                open_values(paths.tested, options.opening.model.files));
  } catch (const Error& e) {
    if (is_misfit(e.code())) return nullptr;
    throw;
  }
}

Sides sides_of_codes(std::unique_ptr<Store> codes, std::unique_ptr<Store> made,
                     const std::vector<std::string>& copied) {
  Sides out = plain_sides(std::move(codes), std::move(made));
  const NameSet<std::string_view> names(copied.begin(), copied.end());
  for (i64 t = 0; t < out.tested_store().tensor_count(); t++)
    if (names.contains(out.tested_store().name(t))) out.copied.insert(t);
  out.objects_apart = "a quantised model has none";
  out.compared_as =
      "codes and scales of each tensor with those that quantising the values of the source again gives";
  out.checks_types = false, out.computed = true;
  return out;
}

}  // namespace mckpt::impl
