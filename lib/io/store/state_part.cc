// Decides by name and type whether a tensor is of the model, of its optimizer, or something else. A name is a
// path through dicts, and in folders of several files begins with a file:
//
//   "optimizer.bin:state.0.exp_avg"    file optimizer.bin; first parts state, 0, exp_avg; last part exp_avg
//
// The first three parts say what the tensor is inside of, the last part what it is. For scales of quantized
// weights the name must fit another tensor: "w_scale" is a scale only if there is a "w" or a "w_packed".
#include "io/store/state_part.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "core/items/dtype.h"
#include "core/items/shape.h"
#include "io/store/names/scale_names.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

// Names under which the state of an optimizer is saved beside a model.
constexpr std::string_view kOptimizerWords[] = {"optimizer",
                                                "optimizers",
                                                "optim",
                                                "optimizer_state",
                                                "optimizer_states",
                                                "optimizer_state_dict",
                                                "optim_state_dict",
                                                "optim_state",
                                                "base_optimizer_state",
                                                "single_partition_of_fp32_groups",
                                                "fp32_from_fp16_params"};
// Names of what else is saved beside a model.
constexpr std::string_view kOtherWords[] = {"rng_state",
                                            "rng",
                                            "rng_states",
                                            "torch_rng_state",
                                            "cuda_rng_state",
                                            "cuda",
                                            "cpu",
                                            "lr_scheduler",
                                            "lr_schedulers",
                                            "scheduler",
                                            "opt_param_scheduler",
                                            "rerun_state_machine",
                                            "dataloader",
                                            "train_state",
                                            "extra_state",
                                            "loss_scaler",
                                            "torch_manual_seed",
                                            "torch_cuda_manual_seed"};
// Names of the states that optimizers store for each parameter.
constexpr std::string_view kStateFields[] = {
    "exp_avg",         "exp_avg_sq",  "max_exp_avg_sq", "exp_avg_sq_row", "exp_avg_sq_col",
    "momentum_buffer", "exp_inf",     "square_avg",     "acc_delta",      "grad_avg",
    "master_param",    "square_avgs", "max_square",     "fp32_param"};
constexpr std::string_view kCounters[] = {"step",  "steps",       "iteration",
                                          "epoch", "global_step", "num_batches_tracked"};

// Beginnings of the names of files that trainers write beside a model.
constexpr std::string_view kOtherFiles[] = {"training_args", "scaler", "sampler", "dl_state",
                                            "trainer_state"};

template <typename Words>
bool is_one_of(const Words& words, std::string_view word) {
  return std::find(std::begin(words), std::end(words), word) != std::end(words);
}

// A name in parts, by dots and slashes.
constexpr std::size_t kFirst = 3;
struct NameParts {
  std::array<std::string_view, kFirst> first{};
  std::string_view last, file;
};

NameParts parts_of(std::string_view name) {
  NameParts parts;
  if (std::size_t colon = name.find(':'); colon != name.npos) {
    parts.file = name.substr(0, colon);
    name.remove_prefix(colon + 1);
  }
  parts.last = name.substr(name.find_last_of("./") + 1);
  for (std::string_view& part : parts.first) {
    std::size_t end = name.find_first_of("./");
    part = name.substr(0, end);
    if (end == name.npos) break;
    name.remove_prefix(end + 1);
  }
  return parts;
}

// Whether the word is in the name, between letters of no word: "optim" is in "distrib_optim.pt", not in
// "optimal.pt".
bool has_whole_word(std::string_view name, std::string_view word) {
  auto ends_word = [](char c) { return c == '_' || c == '.' || c == '-' || (c >= '0' && c <= '9'); };
  for (std::size_t at = name.find(word); at != name.npos; at = name.find(word, at + 1)) {
    const std::size_t end = at + word.size();
    if ((at == 0 || ends_word(name[at - 1])) && (end == name.size() || ends_word(name[end]))) return true;
  }
  return false;
}

// Ends of names that are the name of a quantized weight and one of these: scales, zero points, shapes,
// tables.
constexpr std::string_view kQuantSuffixes[] = {"_scale",      "_scale_inv",     "_scale_2",         "_shape",
                                               "_zero_point", "_g_idx",         "_global_scale",    ".absmax",
                                               ".quant_map",  ".nested_absmax", ".nested_quant_map"};
// Last parts of names beside a "weight" or "weight_packed", and beside a "qweight".
constexpr std::string_view kBesideWeight[] = {"weight_scale_inv", "SCB", "weight_format"};
constexpr std::string_view kBesidePacked[] = {"qzeros", "scales", "g_idx"};

bool looks_quantized(std::string_view name) {
  constexpr std::string_view kSigns[] = {"_blocks", "_packed",    ".qweight", ".absmax",
                                         "_scale",  "_scale_inv", "_scale_2", ".SCB"};
  return std::ranges::any_of(kSigns, [&](std::string_view sign) { return name.ends_with(sign); });
}

std::string_view without(std::string_view name, std::string_view suffix) {
  return name.ends_with(suffix) ? name.substr(0, name.size() - suffix.size()) : std::string_view();
}

}  // namespace

std::string_view part_name(StatePart part) {
  static constexpr std::string_view kNames[] = {"model", "optimizer", "other"};
  return kNames[static_cast<std::size_t>(part)];
}

bool is_state_field(std::string_view last) { return is_one_of(kStateFields, last); }
bool is_counter(std::string_view last) { return is_one_of(kCounters, last); }

StatePart part_of_path(std::string_view path) {
  path = path.substr(path.rfind('/') + 1);
  auto has = [&](std::string_view word) { return has_whole_word(path, word); };
  auto begins = [&](std::string_view word) { return path.starts_with(word); };
  if (begins("model")) return StatePart::kModel;  // model_optim_rng.pt has all of it
  if (has("optim") || has("optimizer") || has("optimizers")) return StatePart::kOptimizer;
  const bool other = has("rng") || has("random_states") || is_schedule(path) || has("extra_state") ||
                     has("dataloader") || std::ranges::any_of(kOtherFiles, begins) || path == "data.pt";
  return other ? StatePart::kOther : StatePart::kModel;
}

bool is_schedule(std::string_view path) {
  path = path.substr(path.rfind('/') + 1);
  return has_whole_word(path, "scheduler") || has_whole_word(path, "schedulers");
}

StatePart part_of(std::string_view name) {
  NameParts parts = parts_of(name);
  auto any = [&](const auto& words) {
    return std::ranges::any_of(parts.first, [&](std::string_view p) { return is_one_of(words, p); });
  };
  if (any(kOptimizerWords) || is_one_of(kStateFields, parts.last)) return StatePart::kOptimizer;
  if (any(kOtherWords) || parts.last.ends_with("_extra_state")) return StatePart::kOther;
  if (StatePart part = part_of_path(parts.file); part != StatePart::kModel) return part;
  if (!is_one_of(kCounters, parts.last)) return StatePart::kModel;
  return parts.first[0] == "state" ? StatePart::kOptimizer : StatePart::kOther;
}

StateParts::StateParts(const Store& store) : store_(store) {
  if (store.files().size() == 1 && store.files()[0].path.empty()) of_file_ = part_of_path(store.root());
  bool quantized = false;
  for (i64 t = 0; t < store.tensor_count() && !quantized; t++) quantized = looks_quantized(store.name(t));
  if (!quantized) return;
  for (i64 t = 0; t < store.tensor_count(); t++) names_.insert(store.name(t));
  for (const auto& [name, value] : store.facts())
    if (i64 bits = 0; name == "packed bits" &&
                      std::from_chars(value.data(), value.data() + value.size(), bits).ec == std::errc() &&
                      bits > 0)
      bits_ = bits;
}

bool StateParts::is_of_quantization(std::string_view name) const {
  for (std::string_view suffix : kQuantSuffixes)
    if (std::string_view stem = without(name, suffix);
        !stem.empty() && (has(stem, "") || has(stem, "_packed")))
      return true;
  if (std::string_view stem = without(name, "_scales"); !stem.empty() && has(stem, "_blocks")) return true;
  if (std::size_t at = name.find(".weight.quant_state."); at != name.npos) return true;
  std::string_view last = name.substr(name.rfind('.') + 1), owner = name.substr(0, name.size() - last.size());
  // A scale of an attention or a cache may be beside no weight. Nemotron-H calls its attention "mixer".
  const bool of_attention = owner.ends_with("attn.") || owner.ends_with("attention.") ||
                            has(owner, "k_proj.weight") || has(owner, "k_proj.weight_packed");
  if (is_activation_scale(name) && of_attention) return true;
  if (is_one_of(kBesideWeight, last) || is_activation_scale(name))
    return has(owner, "weight") || has(owner, "weight_packed");
  return is_one_of(kBesidePacked, last) && has(owner, "qweight");
}

StatePart StateParts::part(i64 tensor) const {
  std::string_view name = store_.name(tensor);
  StatePart part = part_of(name);
  if (part == StatePart::kModel) part = of_file_;
  return part == StatePart::kModel && !names_.empty() && is_of_quantization(name) ? StatePart::kOther : part;
}

bool StateParts::is_scale(i64 tensor) const {
  const std::string_view name = store_.name(tensor);
  return !names_.empty() && part_of(name) == StatePart::kModel && of_file_ == StatePart::kModel &&
         is_of_quantization(name);
}

i64 StateParts::packed_bits(i64 tensor) const {
  constexpr i64 kNibble = 4;
  const DType dtype = store_.dtype(tensor);
  if (dtype == DType::kF4x2 || dtype == DType::kQU4x2) return kNibble;
  if (names_.empty() || (dtype != DType::kU8 && dtype != DType::kI32)) return 0;
  std::string_view name = store_.name(tensor), blocks = without(name, "_blocks"),
                   packed = without(name, "_packed"), qweight = without(name, "qweight");
  bool is_packed = (!blocks.empty() && has(blocks, "_scales")) ||   // MXFP4
                   (!packed.empty() && has(packed, "_scale")) ||    // compressed-tensors
                   (!qweight.empty() && has(qweight, "scales")) ||  // GPTQ, AWQ
                   (dtype == DType::kU8 && (has(name, "_scale_2") || has(name, ".absmax")));  // NVFP4, NF4
  if (!is_packed) return 0;
  return dtype == DType::kU8 ? kNibble : std::min<i64>(bits_, dtype_info(dtype).bits);
}

bool StateParts::is_packed(i64 tensor) const { return packed_bits(tensor) > 0; }

// GPTQ has 32 values of 3 bits in 3 words, so the bits of all words are divided at once.
i64 StateParts::parameters(i64 tensor) const {
  const i64 items = store_.shape(tensor).items(), bits = packed_bits(tensor);
  if (bits == 0) return items;
  return checked_mul(items, dtype_info(store_.dtype(tensor)).bits, "the number of packed bits") / bits;
}

}  // namespace mckpt::impl
