// DequantizedStore: a quantised model seen as the model that it was made of. It has the tensors of values
// under their own names; codes, scales and scales of activations are not tensors of it. Everything else is
// the source's:
//
//   source   w.weight F8_E4M3 [300, 130]   w.weight_scale_inv F32 [3, 2]   norm.weight BF16 [130]
//   view     w.weight BF16    [300, 130]                                   norm.weight BF16 [130]
//
// The bytes of a tensor of values are computed when they are read (ChunkData::unpacked, value_bytes.h):
// nothing is decoded before, and nothing is kept but what the reads of one expert share.
#pragma once

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.h"
#include "core/items/dtype.h"
#include "hf/quantized/bad_numbers.h"
#include "hf/quantized/recognise.h"
#include "io/store/store_view.h"
#include "io/store/summary.h"

namespace mckpt::impl {

class ValueFaults;
class ValueMemory;

// The view. It owns the source, and is as thread-safe.
class DequantizedStore final : public StoreView {
 public:
  // `dtype`: of all dequantised tensors: bfloat16, float16 or float32. Throws kBadCast for another one.
  // Findings are the source's and the model's.
  DequantizedStore(std::unique_ptr<Store> source, QuantizedModel model, DType dtype, BadNumbers bad);
  ~DequantizedStore() override;

  const QuantizedModel& model() const { return model_; }
  bool decodes() const {
    return !model_.tensors.empty();
  }                                                 // otherwise it leaves scales of activations out alone
  DType values() const { return dtype_; }           // of all dequantised tensors
  ValueFaults& faults() const { return *faults_; }  // that reads have seen
  // The parts of the tensor; null for a tensor that the source has as it is.
  const QuantizedTensor* quantized(i64 t) const;
  // The names of scales and zero points of activations and caches. The view does not have these tensors.
  std::vector<std::string> activation_scales() const;
  // Makes tensors of the view of those whose names are chosen, as the source has them. Call it before
  // anything is read.
  void take_activation_scales(const std::function<bool(std::string_view)>& chosen);

  i64 tensor_count() const override { return std::ssize(tensors_); }
  std::string_view name(i64 t) const override;
  DType dtype(i64 t) const override;
  std::span<const i64> dims(i64 t) const override;
  i64 chunk_count(i64 t) const override;
  Chunk chunk(i64 t, i64 index) const override;
  ChunkData resolve(i64 t, i64 index) const override;
  void each_checksum(const std::function<void(const Checksum&)>& visit) const override;

 private:
  struct Tensor {
    i64 source = -1;     // of the source: the tensor itself, or its codes
    i64 quantized = -1;  // index into model_.tensors
  };
  const Tensor& at(i64 t) const { return tensors_[static_cast<std::size_t>(t)]; }
  bool has(i64 source) const { return std::ranges::binary_search(tensors_, source, {}, &Tensor::source); }

  QuantizedModel model_;
  DType dtype_;
  std::vector<Tensor> tensors_;  // in the order of the source
  std::unique_ptr<ValueMemory> memory_;
  std::unique_ptr<ValueFaults> faults_;
};

// The view of a store whose tensors are quantised; otherwise the store itself. `declared` as for recognise().
// `dtype`: of the values; nothing: the type that `declared` has. Does not look at findings: a caller that
// computes with the values refuses them.
std::unique_ptr<Store> dequantized(std::unique_ptr<Store> store, const QuantDeclaration& declared,
                                   std::optional<DType> dtype, BadNumbers bad);
// The declaration of the config in the folder of a store of safetensors, or beside its file. Throws what
// read_quant_declaration() throws.
QuantDeclaration quant_declaration_of(const Store& store);
// The values of a store of safetensors, with the config of its folder. Other stores stay as they are. A
// config that cannot be read, or has another method, is left to those who need it.
std::unique_ptr<Store> dequantized(std::unique_ptr<Store> store, std::optional<DType> dtype = std::nullopt,
                                   BadNumbers bad = BadNumbers::kShow);

// The quantised part of the model and its format, as reports show it: "fp8 blocks 128x128, 61 of 66 modules";
// where no weight is quantised, "4 scales of activations or caches alone".
// Modules are the matrices, and stacks of them, of floating-point values.
std::string quantized_text(const Store& source, const QuantizedModel& model);
inline std::string quantized_text(const DequantizedStore& view) {
  return quantized_text(view.source(), view.model());
}

// open_store() with the view over what is quantised; for commands that show or compare values.
std::unique_ptr<Store> open_values(const std::string& path, const OpenOptions& opening);

// An error of kind kQuantized where the config declares a method that is not decoded, or where names of
// tensors are names of codes and scales that no view decodes; otherwise nothing.
std::optional<Error> undecoded_codes(const Store& store);

// Adds the fact "quantized modules" with that text to a store of safetensors, if any of its tensors is
// quantised, and "packed bits" if no config gives it as a number. Returns the numbers of parameters of all
// tensors of codes, as the values have them, and the tensors beside codes; codes that are not decoded are
// left out.
PackedParameters add_quantized_facts(Store& store);

// The view that a store is; null for any other store.
const DequantizedStore* dequantized_view(const Store& store);
DequantizedStore* dequantized_view(Store& store);

}  // namespace mckpt::impl
