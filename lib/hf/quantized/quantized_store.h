// QuantizedStore: a model of plain numbers seen as a quantised one. Codes and scales are tensors of it, whose
// bytes are computed when they are read (requantizer.h); everything else is the source's:
//
//   source   w.weight BF16    [300, 130]                                        norm.weight BF16 [130]
//   view     w.weight F8_E4M3 [300, 130]   w.weight_scale_inv F32 [3, 2]        norm.weight BF16 [130]
//
// like a pattern    names, types, order and scales come from another quantised model, of which the source may be
//                   what training made
// in blocks of FP8  matrices of linear layers and stacks of experts, as DeepSeek-V3 has them
// MXFP4             stacks of experts, as gpt-oss has them
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "hf/quantized/requantizer.h"
#include "io/store/store.h"

namespace mckpt::impl {

class DequantizedStore;

class QuantizedStore final : public Store {
 public:
  // Throws kUnaccounted for tensors that only one of the two has, kSourceShape for other shapes, kBadCast for
  // values that are not bf16, fp16 or fp32. `pattern` is a view over a quantised model.
  static std::unique_ptr<QuantizedStore> like(std::unique_ptr<Store> values, std::unique_ptr<Store> pattern);
  // Throws kUnaccounted if the source has nothing that is quantised this way.
  static std::unique_ptr<QuantizedStore> fp8_blocks(std::unique_ptr<Store> values);
  // Matrices of which transformers reads other values, or none, where it decodes blocks of 128 x 128: their
  // rows or columns are more than one block and no multiple of it.
  const std::vector<std::string>& ragged() const { return ragged_; }
  static std::unique_ptr<QuantizedStore> mxfp4(std::unique_ptr<Store> values);
  ~QuantizedStore() override;

  const Store& values() const { return *values_; }
  const Store& pattern() const { return *pattern_files_; }  // as it is stored. pre: like a pattern
  // The entry of config.json, as JSON, that declares what the view has. pre: not like a pattern.
  std::string config_entry() const;
  i64 quantized() const { return std::ssize(how_); }  // tensors of values that are quantised
  // Codes, scales, and what else the pattern has for a quantised tensor, such as its shape.
  bool is_made(i64 t) const { return at(t).from != From::kValues; }
  // The tensor of values that codes and scales are of; the tensor itself where it is copied.
  std::string_view made_of(i64 t) const { return at(t).how ? values_->name(at(t).how->values) : at(t).name; }

  i64 tensor_count() const override { return std::ssize(tensors_); }
  std::string_view name(i64 t) const override { return at(t).name; }
  DType dtype(i64 t) const override { return at(t).dtype; }
  std::span<const i64> dims(i64 t) const override { return at(t).dims; }
  i64 chunk_count(i64 t) const override {
    return at(t).from == From::kValues ? values_->chunk_count(at(t).tensor) : 1;
  }
  Chunk chunk(i64 t, i64 index) const override;
  ChunkData resolve(i64 t, i64 index) const override;

 private:
  enum class From : u8 { kValues, kPattern, kCodes, kScales };
  struct Tensor {
    std::string name;
    DType dtype = DType::kU8;
    std::vector<i64> dims;
    From from = From::kValues;
    i64 tensor = -1;  // of the store that has it as it is, or of the values
    const Requantized* how = nullptr;
  };
  QuantizedStore(std::unique_ptr<Store> values, std::unique_ptr<Store> pattern);

  const Tensor& at(i64 t) const { return tensors_[static_cast<std::size_t>(t)]; }
  const Requantized* add_like(const DequantizedStore& pattern, i64 index, i64 values);
  void add_plain(i64 values);
  void add_computed(std::string_view codes, DType codes_type, std::vector<i64> codes_dims, std::string scales,
                    std::vector<i64> scales_dims, Requantized how);
  void refuse_none(std::string_view what) const;

  std::unique_ptr<Store> values_, pattern_;  // the latter a view, or null
  const Store* pattern_files_ = nullptr;     // the files behind it
  std::deque<Requantized> how_;
  std::vector<Tensor> tensors_;
  std::vector<std::string> ragged_;
  std::vector<std::string> plain_modules_;  // matrices that are not quantised
  bool mxfp4_ = false;
  std::unique_ptr<Requantizer> requantizer_;
};

}  // namespace mckpt::impl
