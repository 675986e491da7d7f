// Which tensors there are, and what each is made of. The files of the view are the source's; the tensors that
// are taken from the pattern (scales of activations, shapes) are small, and read into memory.
#include "hf/quantized/quantized_store.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/items/shape.h"
#include "core/quantized/dequantize.h"
#include "hf/quantized/dequantized_store.h"
#include "hf/quantized/value_bytes.h"
#include "io/json/json_writer.h"

namespace mckpt::impl {
namespace {

constexpr i64 kBlock = 128, kMxGroup = 32;

// Matrices that no published model has in FP8: their ends, in front of ".weight".
constexpr std::string_view kNeverQuantised[] = {
    "lm_head",   "embed_tokens", "mlp.gate", "eh_proj", "shared_head.head", "router", "shared_expert_gate",
    "in_proj_a", "in_proj_b",    "conv1d",   "wte",     "word_embeddings"};

bool is_stack(std::string_view name) {
  return name.ends_with(".experts.gate_up_proj") || name.ends_with(".experts.down_proj");
}

bool is_linear(std::string_view name) {
  if (!name.ends_with(".weight")) return false;
  name.remove_suffix(7);
  bool vision = name.find("visual.") != name.npos || name.find("vision_") != name.npos;
  return !vision && std::ranges::none_of(kNeverQuantised, [&](std::string_view end) {
    return name.ends_with(end) && (name.size() == end.size() || name[name.size() - end.size() - 1] == '.');
  });
}

std::vector<i64> dims_of(const Store& store, i64 t) { return {store.dims(t).begin(), store.dims(t).end()}; }

// The rule by which scales of a layout are made anew; none: mckpt knows none. `scale_dims`: of the tensor of
// scales.
std::optional<ScaleRule> rule_of(const QuantLayout& l, std::span<const i64> scale_dims, bool powers_of_two) {
  bool exponents = l.scales == DType::kU8 || l.scales == DType::kF8E8M0;
  if (l.codes == CodeFormat::kE2M1) return exponents ? std::optional(ScaleRule::kMxFloor) : std::nullopt;
  if (l.codes != CodeFormat::kE4M3) return std::nullopt;
  if (exponents || powers_of_two) return ScaleRule::kPowerOfTwo;
  // A scale for a whole tensor would need all of it at once. One scale in a matrix may be the scale of a
  // small block.
  if (scale_dims.size() < 2 && l.scale_rows() * l.scale_columns() == 1) return std::nullopt;
  return l.block_rows < l.rows || l.rows <= kBlock ? std::optional(ScaleRule::kAmax) : std::nullopt;
}

}  // namespace

QuantizedStore::QuantizedStore(std::unique_ptr<Store> values, std::unique_ptr<Store> pattern)
    : values_(std::move(values)), pattern_(std::move(pattern)) {
  if (pattern_) pattern_files_ = &dequantized_view(*pattern_)->source();
  root_ = values_->root();
  format_ = values_->format();
  opening_ = values_->opening();
  files_ = values_->files();
  facts_ = values_->facts();
  findings_ = values_->findings();
  requantizer_ = std::make_unique<Requantizer>(*values_, pattern_files_);
}

QuantizedStore::~QuantizedStore() = default;

void QuantizedStore::add_plain(i64 t) {
  tensors_.push_back(
      {std::string(values_->name(t)), values_->dtype(t), dims_of(*values_, t), From::kValues, t});
}

void QuantizedStore::add_computed(std::string_view codes, DType codes_type, std::vector<i64> codes_dims,
                                  std::string scales, std::vector<i64> scales_dims, Requantized how) {
  if (!is_dequantized_type(values_->dtype(how.values)))
    throw Error(Code::kBadCast, "only floating-point numbers are quantised")
        .tensor(values_->name(how.values))
        .expected("bfloat16, float16 or float32")
        .found(dtype_name(values_->dtype(how.values)));
  const Requantized* kept = &how_.emplace_back(std::move(how));
  tensors_.push_back(
      {std::string(codes), codes_type, std::move(codes_dims), From::kCodes, kept->values, kept});
  tensors_.push_back(
      {std::move(scales), kept->layout.scales, std::move(scales_dims), From::kScales, kept->values, kept});
}

void QuantizedStore::refuse_none(std::string_view what) const {
  if (!how_.empty()) return;
  throw Error(Code::kUsage, "the model has no tensor that is quantised in this way")
      .file(root_)
      .expected(what);
}

std::unique_ptr<QuantizedStore> QuantizedStore::fp8_blocks(std::unique_ptr<Store> values) {
  std::unique_ptr<QuantizedStore> out(new QuantizedStore(std::move(values), nullptr));
  const Store& source = out->values();
  for (i64 t = 0; t < source.tensor_count(); t++) {
    std::string_view name = source.name(t);
    std::vector<i64> d = dims_of(source, t);
    bool matrix = d.size() == 2 && is_linear(name), stack = d.size() == 3 && is_stack(name);
    if (!matrix && !stack) {
      if (d.size() == 2 && name.ends_with(".weight"))
        out->plain_modules_.emplace_back(name.substr(0, name.size() - 7));
      out->add_plain(t);
      continue;
    }
    Requantized how{.values = t, .rule = ScaleRule::kAmax};
    how.layout = {
        .codes = CodeFormat::kE4M3, .scales = DType::kF32, .block_rows = kBlock, .block_columns = kBlock};
    how.layout.matrices = stack ? d[0] : 1;
    how.layout.rows = d[d.size() - 2], how.layout.columns = d[d.size() - 1];
    const auto is_ragged = [](i64 size) { return size > kBlock && size % kBlock != 0; };
    if (is_ragged(how.layout.rows) || is_ragged(how.layout.columns)) out->ragged_.emplace_back(name);
    std::vector<i64> scales = {how.layout.scale_rows(), how.layout.scale_columns()};
    if (stack) scales.insert(scales.begin(), d[0]);
    out->add_computed(name, DType::kF8E4M3, d, cat(name, "_scale_inv"), std::move(scales), how);
  }
  out->refuse_none("matrices of linear layers, NAME.weight");
  return out;
}

std::unique_ptr<QuantizedStore> QuantizedStore::mxfp4(std::unique_ptr<Store> values) {
  std::unique_ptr<QuantizedStore> out(new QuantizedStore(std::move(values), nullptr));
  out->mxfp4_ = true;
  const Store& source = out->values();
  for (i64 t = 0; t < source.tensor_count(); t++) {
    std::string_view name = source.name(t);
    std::vector<i64> d = dims_of(source, t);
    if (d.size() != 3 || !is_stack(name)) {
      out->add_plain(t);
      continue;
    }
    if (d[1] % kMxGroup != 0)
      throw Error(Code::kSourceShape, "the experts do not divide into groups")
          .tensor(name)
          .expected("a multiple of 32 in the second dimension")
          .found(dims_to_string(d));
    Requantized how{.values = t, .turned = true, .rule = ScaleRule::kMxFloor};
    how.layout = {
        .codes = CodeFormat::kE2M1, .scales = DType::kU8, .block_rows = 1, .block_columns = kMxGroup};
    how.layout.matrices = d[0], how.layout.rows = d[2], how.layout.columns = d[1];
    out->add_computed(cat(name, "_blocks"), DType::kU8, {d[0], d[2], d[1] / kMxGroup, kMxGroup / 2},
                      cat(name, "_scales"), {d[0], d[2], d[1] / kMxGroup}, how);
  }
  out->refuse_none("stacks of experts, NAME.experts.gate_up_proj");
  return out;
}

const Requantized* QuantizedStore::add_like(const DequantizedStore& pattern, i64 index, i64 values) {
  const QuantizedTensor& q = pattern.model().tensors[index];
  if (!std::ranges::equal(values_->dims(values), q.dims))
    throw Error(Code::kSourceShape, "a tensor has another shape than in the quantised model")
        .tensor(q.name)
        .expected(dims_to_string(q.dims))
        .found(dims_to_string(values_->dims(values)));
  if (!is_dequantized_type(values_->dtype(values)))
    throw Error(Code::kBadCast, "only floating-point numbers are quantised")
        .tensor(q.name)
        .found(dtype_name(values_->dtype(values)));
  // New scales are made for groups side by side alone.
  const std::optional<ScaleRule> rule =
      q.groups >= 0 ? std::nullopt
                    : rule_of(q.layout, pattern.source().dims(q.scales), pattern.model().power_scales);
  return &how_.emplace_back(Requantized{.layout = stored_layout(pattern.source(), q),
                                        .values = values,
                                        .turned = q.turned,
                                        .rule = rule,
                                        .pattern_codes = q.codes,
                                        .pattern_scales = q.scales,
                                        .pattern_zero_points = q.zero_points});
}

std::unique_ptr<QuantizedStore> QuantizedStore::like(std::unique_ptr<Store> values,
                                                     std::unique_ptr<Store> pattern) {
  const DequantizedStore& view = *dequantized_view(*pattern);
  std::unique_ptr<QuantizedStore> out(new QuantizedStore(std::move(values), std::move(pattern)));
  const Store &source = out->values(), &files = view.source();
  NameMap<std::string_view, i64> by_name;
  for (i64 t = 0; t < source.tensor_count(); t++) by_name.emplace(source.name(t), t);
  std::vector<i64> model_of(static_cast<std::size_t>(files.tensor_count()), -1);
  std::vector<bool> scales(model_of.size());
  for (i64 i = 0; i < std::ssize(view.model().tensors); i++) {
    model_of[view.model().tensors[i].codes] = model_of[view.model().tensors[i].scales] = i;
    scales[view.model().tensors[i].scales] = true;
  }
  std::vector<const Requantized*> made(view.model().tensors.size());
  std::vector<std::string> missing;
  auto taken = [&](std::string_view name) {
    auto at = by_name.find(name);
    if (at == by_name.end()) return missing.push_back(escaped(name)), i64{-1};
    return at->second;
  };
  for (i64 t = 0; t < files.tensor_count(); t++) {
    Tensor tensor{std::string(files.name(t)), files.dtype(t), dims_of(files, t), From::kPattern, t};
    if (i64 i = model_of[t]; i >= 0) {
      i64 value = taken(view.model().tensors[i].name);
      if (value < 0) continue;
      if (!made[i]) made[i] = out->add_like(view, i, value);
      tensor.from = scales[t] ? From::kScales : From::kCodes;
      tensor.tensor = value, tensor.how = made[i];
    } else if (!std::ranges::binary_search(view.model().beside, t)) {
      tensor.from = From::kValues, tensor.tensor = taken(files.name(t));
      if (tensor.tensor < 0) continue;
      tensor.dtype = source.dtype(tensor.tensor), tensor.dims = dims_of(source, tensor.tensor);
    }
    out->tensors_.push_back(std::move(tensor));
  }
  for (i64 t = 0; t < view.tensor_count(); t++) by_name.erase(view.name(t));
  if (!missing.empty() || !by_name.empty()) {
    std::vector<std::string> extra;
    std::ranges::sort(missing);
    missing.erase(std::unique(missing.begin(), missing.end()),
                  missing.end());  // codes and scales miss one tensor
    for (const auto& [name, t] : by_name) extra.push_back(escaped(name));
    std::ranges::sort(extra);
    throw Error(Code::kUnaccounted, "the model and the quantised one do not have the same tensors")
        .file(source.root())
        .expected(
            cat("the tensors of ", files.root(), missing.empty() ? "" : cat("; missing: ", listed(missing))))
        .found(extra.empty() ? "fewer" : cat("more: ", listed(extra)));
  }
  return out;
}

Chunk QuantizedStore::chunk(i64 t, i64 index) const {
  const Tensor& tensor = at(t);
  if (tensor.from == From::kValues) return values_->chunk(tensor.tensor, index);
  return {.offsets = zero_offsets(tensor.dims.size()), .sizes = tensor.dims, .file = 0};
}

ChunkData QuantizedStore::resolve(i64 t, i64 index) const {
  const Tensor& tensor = at(t);
  ChunkData out{.file = 0, .dtype = tensor.dtype};
  switch (tensor.from) {
    case From::kValues:
      out = values_->resolve(tensor.tensor, index);
      if (out.checksum) out.checksum->tensor = t;
      break;
    case From::kPattern:
      out.unpacked = bytes_in_memory(*pattern_files_, tensor.tensor);
      break;
    case From::kCodes:
      out.unpacked = requantizer_->codes(*tensor.how);
      add_sums(*values_, tensor.how->values, out.beneath);
      break;
    case From::kScales:
      out.unpacked = requantizer_->scales(*tensor.how);
      add_sums(*values_, tensor.how->values, out.beneath);
      break;
  }
  for (Checksum& sum : out.beneath) sum.tensor = t;
  return out;
}

std::string QuantizedStore::config_entry() const {
  std::string text;
  JsonWriter json(text);
  json.begin_object();
  if (mxfp4_) {
    json.key("modules_to_not_convert").begin_array();
    for (const char* module :
         {"model.layers.*.self_attn", "model.layers.*.mlp.router", "model.embed_tokens", "lm_head"})
      json.value(module);
    json.end_array().field("quant_method", "mxfp4").end_object();
    return text;
  }
  json.field("activation_scheme", "dynamic").field("fmt", "e4m3").field("quant_method", "fp8");
  json.key("weight_block_size").begin_array().value(kBlock).value(kBlock).end_array();
  json.key("modules_to_not_convert").begin_array();
  for (const std::string& module : plain_modules_) json.value(module);
  json.end_array().end_object();
  return text;
}

}  // namespace mckpt::impl
