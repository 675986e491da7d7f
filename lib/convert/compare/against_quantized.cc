// Compares the codes and scales of a quantised result with those that quantising the values of its source again
// gives. The result is its own pattern: it says which tensors are quantised and how, and a block keeps the scale
// that is there only if codes with that scale stand for exactly the source's values.
#include "convert/compare/against.h"
#include "convert/compare/compare.h"
#include "convert/compare/object_check.h"
#include "convert/open/checkpoint.h"
#include "convert/open/megatron_names.h"
#include "convert/open/own_model.h"
#include "convert/plan/quantized/exported_values.h"
#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/quantized/dequantized_store.h"
#include "hf/quantized/quantized_store.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// The values that a conversion quantises: those of a folder, or what an export of a checkpoint writes.
std::unique_ptr<Store> values_of(const std::string& source, const CompareOptions& options) {
  std::unique_ptr<Store> store = open_values(source, options.opening.model.files);
  if (!has_megatron_names(*store)) return store;
  CheckpointOptions how = options.opening;
  how.records_apart = true;
  CheckpointModel checkpoint = open_checkpoint(std::move(store), how);
  std::vector<DType> types = checkpoint.original_types();
  return std::make_unique<ExportedValues>(std::move(checkpoint), types);
}

bool is_misfit(Code code) {
  return code == Code::kUnaccounted || code == Code::kSourceShape || code == Code::kBadCast;
}

}  // namespace

std::unique_ptr<Store> quantized_like(const std::string& path, const std::string& source,
                                      const CompareOptions& options) {
  try {
    return QuantizedStore::like(values_of(source, options), open_values(path, options.opening.model.files));
  } catch (const Error& e) {
    if (is_misfit(e.code())) return nullptr;
    throw;
  }
}

bool against_quantized(const Store& codes, const Store& made, const Comparing& c) {
  objects_not_compared("a quantised model has none", c.report);
  c.report.compared_as =
      "codes and scales of each tensor with those that quantising the values of the source again gives";
  return against_names(codes, made, nullptr, c);
}

}  // namespace mckpt::impl
