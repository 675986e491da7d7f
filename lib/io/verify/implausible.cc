// Which tensors are weights is a question of names (io/store/state_part.h), and so is which of them may be
// zero. The lists here are what transformers, PEFT, diffusers and Megatron begin with zeros.
#include "io/verify/implausible.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <optional>

#include "core/base/text.h"
#include "core/items/shape.h"
#include "io/store/names/scale_names.h"
#include "io/store/store.h"
#include "io/values/element.h"
#include "io/values/finite.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {
namespace {

// Powers of two that no value reaches: of a weight; of a state of an optimizer or a scale, which depend on
// gradients and on the model's own numbers. A flipped exponent bit gives 2^64 times the value, and mostly
// 2^128 times.
constexpr int kWeightLimit = 40, kOtherLimit = 64;
// How far above half of its neighbours a value of a matrix must be to be told: "super weights" are below
// 2^10.
constexpr int kFarAbove = 14;

// Last parts of names that are weights of a layer. Others are tokens, positions, tables, queries and
// statistics, which programs keep as parameters of their own and begin with zeros.
constexpr std::string_view kWeights[] = {"weight",    "weight1", "weight2",   "kernel",  "gate_up_proj",
                                         "down_proj", "up_proj", "gate_proj", "w1",      "w2",
                                         "w3",        "qweight", "weight_w",  "weight_v"};
constexpr std::string_view kWeightEnds[] = {"_blocks", "_packed"};  // codes of quantised weights
// Parts of names with which a tensor is not a weight by itself: factors of adapters, gates of image layers,
// masks.
constexpr std::string_view kMayBeZero[] = {
    "lora_", "hada_",   "lokr_",        "oft_",   "boft_",      "vera_", "ia3_",   "adapter",  "bias",
    "mask",  "rel_pos", "relative_pos", "_token", "token_type", "zero_", "prompt", "position", "pos_embed"};
// Weights that programs begin with zeros, so that a new layer changes nothing: they stay so until the first
// step.
constexpr std::string_view kZeroAtFirst[] = {
    "o_proj", "down_proj", "out_proj", "c_proj",        "wo",   "w2",     "linear_proj", "linear_fc2",
    "fc2",    "to_out",    "proj_out", "dense_4h_to_h", "gate", "router", "adaln",       "adaLN",
    "conv1d", "head",      "score",    "classifier"};
constexpr std::string_view kMasks[] = {"mask"};
constexpr std::string_view kNorms[] = {"norm", "ln"};
// The rows of the vocabulary of a tensor-parallel rank may be padding alone.
constexpr std::string_view kVocabulary[] = {"embed", "lm_head", "output_layer", "wte"};

template <typename Words>
bool has_one_of(std::string_view name, const Words& words) {
  return std::ranges::any_of(words, [&](std::string_view w) { return name.find(w) != name.npos; });
}

// Whether one of the dotted parts of the name is one of the words.
template <typename Words>
bool has_part_of(std::string_view name, const Words& words) {
  for (std::size_t at = 0; at <= name.size();) {
    const std::size_t end = std::min(name.find('.', at), name.size());
    const std::string_view part = name.substr(at, end - at);
    auto fits = [&](std::string_view w) { return part == w || part.ends_with(cat("_", w)); };
    if (std::ranges::any_of(words, fits)) return true;
    at = end + 1;
  }
  return false;
}

std::string_view last_part(std::string_view name) { return name.substr(name.find_last_of("./:") + 1); }

// Whether the name and the shape belong to a matrix of the model, or a stack of them.
bool is_matrix(std::string_view name, std::span<const i64> dims) {
  if (std::ranges::count_if(dims, [](i64 n) { return n > 1; }) < 2) return false;
  const std::string_view last = last_part(name);
  const bool weight = std::ranges::find(kWeights, last) != std::end(kWeights) ||
                      std::ranges::any_of(kWeightEnds, [&](std::string_view e) { return last.ends_with(e); });
  return weight && !has_one_of(name, kMayBeZero);
}

// The name with # for each number from `from` on.
std::string without_numbers(std::string_view name, std::size_t from) {
  std::string out(name.substr(0, from));
  for (char c : name.substr(from)) {
    const bool digit = c >= '0' && c <= '9';
    if (!digit) out += c;
    if (digit && !out.ends_with('#')) out += '#';
  }
  return out;
}

// Tensors of one kind have one, in every layer and for every expert.
std::string kind_of(std::string_view name) { return without_numbers(name, 0); }

// Tensors of one kind have one for all experts of a layer; what is of no expert has its name.
std::string kind_in_layer(std::string_view name) {
  return without_numbers(name, std::min(name.find("experts."), name.size()));
}

// The place in a tensor of its n-th number, "[3, 5]".
std::string place(const Store& store, i64 tensor, i64 number) {
  const i64 item = number / element_form(store.dtype(tensor)).per_element;
  return dims_to_string(item_index(item, store.dims(tensor)));
}

std::string number_of(DType dtype, u64 code) {
  u8 bytes[8];
  std::memcpy(bytes, &code, sizeof bytes);
  return number_text(dtype, bytes, 0);
}

// 2^(exponent + 1) as text: "0.25", "6.6e+36".
std::string power_text(int exponent) {
  const float value = static_cast<float>(std::ldexp(1.0, exponent + 1));
  return cat(value);
}

}  // namespace

void Implausible::add(i64 tensor, const NonFinite& values) {
  if (store_.shape(tensor).items() == 0) return;
  const std::string_view name = store_.name(tensor);
  const StatePart part = parts_.part(tensor);
  const bool scale = is_beside_codes(name), weight = part == StatePart::kModel && !scale;
  const bool matrix = weight && is_matrix(name, store_.dims(tensor));
  if (matrix) matrices_.push_back(tensor);
  const Loudest& loudest = values.loudest;
  if (matrix && loudest.code == 0 && values.count() == 0) zeros_.push_back(tensor);
  if (loudest.at < 0 || is_activation_scale(name) || has_one_of(name, kMasks)) return;
  if (!weight && !scale && part != StatePart::kOptimizer) return;
  const int limit = weight ? kWeightLimit : kOtherLimit;
  const bool far = matrix && loudest.apart && loudest.few && loudest.exponent >= loudest.around + kFarAbove;
  // Values of every size from the smallest up are not weights either, but nothing shows that one of them is
  // wrong.
  const bool huge = loudest.exponent >= limit && (loudest.apart || loudest.around >= limit);
  if (!far && !huge) return;
  Finding f{.code = Code::kImplausible, .tensor = std::string(name), .warning = true};
  f.message = cat("a magnitude of ", number_of(store_.dtype(tensor), loudest.code), " at ",
                  place(store_, tensor, loudest.at));
  if (loudest.exponent > loudest.around)
    f.message += cat("; half of the values near it are below ", power_text(loudest.around));
  loud_.emplace_back(tensor, std::move(f));
}

// Whether the weights of all norms are as they begin: each one number throughout. Without norms it is not
// known.
bool Implausible::is_untrained(TensorReader& reader) const {
  bool norms = false;
  for (i64 t = 0; t < store_.tensor_count(); t++) {
    const std::string_view name = store_.name(t);
    if (store_.dims(t).size() != 1 || store_.shape(t).items() < 2 || parts_.part(t) != StatePart::kModel ||
        last_part(name) != "weight" || !has_wide_exponents(store_.dtype(t)) || !has_one_of(name, kNorms))
      continue;
    const std::size_t width = static_cast<std::size_t>(dtype_info(store_.dtype(t)).bits) / 8;
    std::string first;
    bool alike = true;
    reader.read(t, [&](std::span<const u8> bytes, i64) {
      if (first.empty()) first.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(width));
      for (std::size_t i = 0; i < bytes.size(); i++) alike &= static_cast<u8>(first[i % width]) == bytes[i];
    });
    if (!alike) return false;
    norms = true;
  }
  return norms;
}

// A zero matrix is told if others of its kind have values; or if all of them are zero and no program begins
// so.
void Implausible::add_zeros(TensorReader& reader, std::vector<std::pair<i64, Finding>>& out) const {
  std::map<std::string, i64> alike, zero, alike_in_layer, zero_in_layer;
  for (i64 t : matrices_) alike[kind_of(store_.name(t))]++, alike_in_layer[kind_in_layer(store_.name(t))]++;
  for (i64 t : zeros_) zero[kind_of(store_.name(t))]++, zero_in_layer[kind_in_layer(store_.name(t))]++;
  std::optional<bool> untrained;
  for (i64 t : zeros_) {
    const std::string_view name = store_.name(t);
    const std::string kind = kind_of(name);
    const bool some = zero[kind] < alike[kind];
    if (some && has_one_of(name, kVocabulary)) continue;
    if (!some && has_part_of(name, kZeroAtFirst)) {
      if (!untrained) untrained = is_untrained(reader);
      if (*untrained) continue;
    }
    const std::string in_layer = kind_in_layer(name);
    const bool experts = zero_in_layer[in_layer] < alike_in_layer[in_layer];
    out.push_back({t,
                   {.code = Code::kImplausible,
                    .tensor = std::string(name),
                    .message = experts ? "every value is zero, unlike those of its kind in other experts"
                               : some  ? "every value is zero, unlike those of its kind in other layers"
                                       : "every value is zero",
                    .warning = true}});
  }
}

std::vector<Finding> Implausible::findings(TensorReader& reader) const {
  std::vector<std::pair<i64, Finding>> all = loud_;
  if (!zeros_.empty()) add_zeros(reader, all);
  std::ranges::stable_sort(all, {}, &std::pair<i64, Finding>::first);
  std::vector<Finding> out;
  for (auto& [tensor, finding] : all) out.push_back(std::move(finding));
  return out;
}

}  // namespace mckpt::impl
