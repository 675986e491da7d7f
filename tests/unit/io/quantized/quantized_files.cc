#include "quantized_files.h"

#include <cstring>

#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl::quantized_files {
namespace {

const Held* find(const Tensors& tensors, const std::string& name) {
  auto found = tensors.find(name);
  return found == tensors.end() ? nullptr : &found->second;
}

float one_float(const Held& held) {
  float value = 0;
  std::memcpy(&value, held.bytes.data(), sizeof value);
  return value;
}

// Sets the sizes of the values, whose parts have the shape of rows and columns.
void set_sizes(QuantLayout& layout, const std::vector<i64>& dims, i64 columns) {
  layout.rows = dims[dims.size() - 2];
  layout.columns = columns;
  layout.matrices = dims.size() == 3 ? dims[0] : 1;
}

// The blocks of FP8, by the shape of the scales; block sizes where they cannot be seen are the answers'
// facts.
void set_fp8_blocks(QuantLayout& layout, const std::string& name, const Held& scales,
                    const GoldenJson& facts) {
  std::string stem = name.substr(0, name.find('.'));
  if (const GoldenJson* block = facts.find("block")) {
    layout.block_rows = block->integers()[0], layout.block_columns = block->integers()[1];
  } else if (facts.find("blocks") && facts["blocks"].find(stem)) {
    std::vector<std::int64_t> sizes = facts["blocks"][stem].integers();
    layout.block_rows = sizes[0], layout.block_columns = sizes[1];
  } else if (scales.dims.size() < 2 || scales.bytes.size() == 4) {
    layout.block_rows = layout.rows, layout.block_columns = layout.columns;
  } else if (scales.dims[1] == 1) {
    layout.block_columns = layout.columns;
  } else if (scales.dims[0] == layout.rows) {
    layout.block_columns = 32;
  } else {
    layout.block_rows = layout.block_columns = 16;
  }
}

// pack-quantized: the answers' cases say how many bits, a model's config.json 4.
Stored packed_int(const Tensors& tensors, const std::string& stem, const GoldenJson& facts) {
  Stored s;
  s.codes = find(tensors, stem + "_packed"), s.codes_name = stem + "_packed";
  s.scales = find(tensors, stem + "_scale"), s.scales_name = stem + "_scale";
  s.zero_points = find(tensors, stem + "_zero_point");
  const Held& shape = *find(tensors, stem + "_shape");
  i64 columns = 0;
  std::memcpy(&columns, shape.bytes.data() + shape.bytes.size() / 2, shape.bytes.size() / 2);
  s.layout.codes = CodeFormat::kPackedInt;
  if (facts.find("cases"))
    s.layout.int_bits =
        static_cast<int>(facts["cases"][stem.substr(0, stem.find('.'))]["num_bits"].integer());
  s.layout.zero_points = s.zero_points != nullptr;
  s.layout.product_is_f16 = s.scales->dtype == DType::kF16;
  set_sizes(s.layout, s.codes->dims, columns);
  s.layout.block_columns = columns / s.scales->dims[1];
  return s;
}

Stored nvfp4(const Tensors& tensors, const std::string& name, const Held& codes) {
  Stored s;
  s.codes = &codes;
  s.scales = find(tensors, name + "_scale"), s.scales_name = name + "_scale";
  s.layout.codes = CodeFormat::kE2M1;
  s.layout.block_columns = 16;
  set_sizes(s.layout, codes.dims, codes.dims[1] * 2);
  if (const Held* global = find(tensors, name + "_global_scale")) {
    s.layout.tensor_rule = global->dims.empty() ? TensorScale::kDivideToBf16 : TensorScale::kDivide;
    s.layout.tensor_scale = one_float(*global);
  } else {
    s.layout.tensor_rule = TensorScale::kTimes;
    s.layout.tensor_scale = one_float(*find(tensors, name + "_scale_2"));
    s.layout.nibble_8_is_plus_zero = true;
  }
  return s;
}

}  // namespace

Tensors read_tensors(const std::string& path) {
  std::unique_ptr<Store> store = open_store(MCKPT_TEST_DATA "/quantized/" + path);
  StoreFiles files(*store);
  TensorReader reader(*store, files);
  Tensors tensors;
  for (i64 t = 0; t < store->tensor_count(); t++) {
    Held& held = tensors[std::string(store->name(t))];
    held.dtype = store->dtype(t);
    held.dims.assign(store->dims(t).begin(), store->dims(t).end());
    reader.read(t, [&](std::span<const u8> bytes, i64) {
      held.bytes.insert(held.bytes.end(), bytes.begin(), bytes.end());
    });
  }
  return tensors;
}

Stored stored_as(const Tensors& tensors, const std::string& name, const GoldenJson& facts) {
  Stored s;
  if (const Held* blocks = find(tensors, name + "_blocks")) {
    s.codes = blocks, s.codes_name = name + "_blocks";
    s.scales = find(tensors, name + "_scales"), s.scales_name = name + "_scales";
    s.layout.codes = CodeFormat::kE2M1;
    s.layout.block_columns = 32;
    set_sizes(s.layout, s.scales->dims, s.scales->dims.back() * 32);
    s.turned = true;
  } else if (find(tensors, name + "_shape")) {
    s = packed_int(tensors, name, facts);
  } else if (const Held* packed = find(tensors, name + "_packed")) {
    s = nvfp4(tensors, name, *packed);
  } else if (tensors.at(name).dtype == DType::kU8) {
    s = nvfp4(tensors, name, tensors.at(name));
  } else if (tensors.at(name).dtype == DType::kF8E4M3) {
    s.codes = &tensors.at(name), s.codes_name = name;
    s.scales_name = name + "_scale_inv";
    s.scales = find(tensors, s.scales_name);
    if (!s.scales) s.scales = find(tensors, s.scales_name = name + "_scale");
    set_sizes(s.layout, s.codes->dims, s.codes->dims.back());
    set_fp8_blocks(s.layout, name, *s.scales, facts);
  } else {
    return s;
  }
  s.layout.scales = s.scales->dtype;
  return s;
}

}  // namespace mckpt::impl::quantized_files
