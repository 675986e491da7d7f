// Gives every module of the adapter its tensors of the base.
#include "hf/adapter/pairing.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "hf/adapter/lora_config.h"
#include "hf/adapter/modules.h"
#include "hf/adapter/parameters.h"
#include "hf/adapter/settings.h"
#include "hf/adapter/vocabulary.h"
#include "io/store/store.h"
#include "io/values/same_bytes.h"

namespace mckpt::impl {
namespace {

constexpr const char* kOtherBase =
    "check that the base is the model that was trained, with the names of its own folder";

class Pairing {
 public:
  Pairing(const Store& base, const Store& adapter, const LoraConfig& config, const BaseFacts& facts)
      : base_(base, facts), adapter_(adapter), config_(config), vocabulary_(base_, facts, config) {}

  AdaptedModel run() {
    AdapterNames names = adapter_names(adapter_);
    modules_ = std::move(names.modules);
    if (names.unused >= 0) refuse_unused(names.unused);
    for (auto& [tensor, own] : names.whole) replace(tensor, std::move(own));
    // Where the output layer is the embedding, PEFT merges into it last.
    for (bool heads : {false, true})
      for (const auto& entry : modules_)
        if (is_head_weight(cat(entry.first, ".weight")) == heads)
          with_tensor(entry.first, [&] { pair(entry.first, entry.second); });
    if (vocabulary_.tied() >= 0 && vocabulary_.unties()) change(head("lm_head.weight"));
    AdaptedModel out;
    out.untied = head_ >= 0;
    for (auto& [tensor, adapted] : adapted_) out.tensors.push_back(adapted);
    for (const AdaptedTensor& a : out.tensors) check_types(a);
    check_vocabulary(out);
    refuse_unlike_copies();
    AdaptedParts parts{std::vector<bool>(static_cast<std::size_t>(base_.store().tensor_count())), saved_};
    for (const AdaptedTensor& a : out.tensors)
      if (!a.factors.empty()) parts.factors[a.from] = true;
    check_settings(config_, base_, parts, out.notes);
    if (shared_)
      out.notes.push_back(
          "the output layer of the base is its embedding: what the adapter adds to either is in both, as "
          "merge_and_unload makes it, though the model computed with them apart while it was trained");
    return out;
  }

 private:
  // Errors about a module have its name.
  template <typename Fn>
  void with_tensor(const std::string& name, Fn&& fn) {
    try {
      fn();
    } catch (Error& e) {
      e.default_tensor(name);
      throw;
    }
  }

  std::span<const i64> dims(i64 t) const { return adapter_.dims(t); }
  std::string shape_text(i64 t) const { return dims_to_string(dims(t)); }

  void replace(i64 t, std::string own) {
    const i64 b = target(own);
    if (b < 0) refuse_unused(t);
    AdaptedTensor& a = change(b);
    std::span<const i64> base = base_.store().dims(a.from);
    // After resize_token_embeddings the adapter has both tensors of the vocabulary whole.
    const bool resized = (is_embedding_weight(own) || is_head_weight(own)) && base.size() == 2 &&
                         dims(t).size() == 2 && dims(t)[1] == base[1] && dims(t)[0] > 0;
    if (!resized && !std::ranges::equal(dims(t), base))
      throw Error(Code::kSourceShape, "a tensor of the adapter replaces one of another shape")
          .tensor(own)
          .expected(dims_to_string(base))
          .found(shape_text(t));
    saved_.push_back(std::move(own));
    // An output layer that is the embedding is there a second time.
    if (a.replaced >= 0 && b == vocabulary_.tied())
      copies_.emplace_back(a.replaced, t);
    else if (a.replaced >= 0)
      refuse_unused(t);
    a.replaced = t;
  }

  // The tensor of the result that a name of the adapter means: of the base, or an output layer that the base
  // has not. -1: there is none.
  i64 target(const std::string& name) {
    const i64 b = base_.find(name);
    if (b < 0 && vocabulary_.tied() >= 0 && is_head_weight(name))
      return vocabulary_.unties() ? head(name) : vocabulary_.tied();
    return b;
  }

  // The output layer of its own that the adapter gives a base without one.
  i64 head(const std::string& name) {
    if (head_ < 0) head_ = base_.store().tensor_count(), head_name_ = base_.on_disk(name);
    return head_;
  }

  // The shape that the tensor has in the result.
  std::span<const i64> dims_of(const AdaptedTensor& a) const {
    return a.replaced >= 0 ? dims(a.replaced) : base_.store().dims(a.from);
  }

  [[noreturn]] void refuse_unused(i64 t) const {
    std::string_view name = adapter_.name(t), own = name.substr(std::min(kAdapterPrefix.size(), name.size()));
    Error e(Code::kUnaccounted, "a tensor of the adapter belongs to no tensor of its base");
    e.tensor(name).help(kOtherBase);
    if (std::string_view near = nearest(own, base_.names()); !near.empty())
      e.note(cat("the nearest name in the base is ", escaped(near)));
    throw e;
  }

  // The entry of a tensor of the base.
  AdaptedTensor& change(i64 tensor) {
    AdaptedTensor& a = adapted_[tensor];
    a.tensor = a.from = tensor;
    if (tensor == head_) a.from = vocabulary_.tied(), a.name = head_name_;
    return a;
  }

  // Adds factors to what the tensor has. Two pairs may only be those of a tied embedding.
  void add_factors(i64 tensor, const AdaptedFactors& factors) {
    AdaptedTensor& a = change(tensor);
    const bool tied = tensor == vocabulary_.tied();
    shared_ |= tied;
    if ((!a.factors.empty() && !tied) || a.factors.size() > 1 || a.added >= 0)
      throw Error(Code::kUnaccounted, "two pairs of factors change one tensor of the base")
          .tensor(base_.store().name(tensor));
    a.factors.push_back(factors);
  }

  void pair(const std::string& name, const AdapterModule& m) {
    const bool embedding = m.embedding.a >= 0 || m.embedding.b >= 0;
    if (m.tokens >= 0) put_tokens(name, m.tokens);
    if (m.tokens >= 0 && !embedding && m.pairs.empty() && m.bias < 0 && m.magnitude < 0) return;
    if (embedding) pair_embedding(name, m);
    for (const auto& [depth, p] : m.pairs) check_whole(p);
    std::vector<std::string> parameters = targeted_parameters(base_, config_, name);
    if (!parameters.empty() && !m.pairs.empty()) {
      if (embedding) throw two_kinds();
      pair_parameters_of(name, m, parameters);
    } else if (!m.pairs.empty()) {
      if (embedding) throw two_kinds();
      pair_linear(name, m);
    } else if (!embedding) {
      throw Error(Code::kUnaccounted, "a module of the adapter has no factors")
          .expected("lora_A and lora_B")
          .found(m.bias >= 0 ? "lora_B.bias" : "lora_magnitude_vector");
    }
  }

  static Error two_kinds() {
    return Error(Code::kUnaccounted, "the module has factors of an embedding and of a matrix");
  }

  void check_whole(const AdapterModule::Pair& p) const {
    if (p.a >= 0 && p.b >= 0) return;
    throw Error(Code::kUnaccounted, "one of the two factors of a module is missing")
        .expected("lora_A and lora_B")
        .found(escaped(adapter_.name(std::max(p.a, p.b))))
        .help("the adapter was not saved whole: save it again");
  }

  // The pair with its sizes. Throws for factors that are no matrices, or do not have one rank.
  FactorPair sized(const AdapterModule::Pair& p) const {
    if (dims(p.a).size() != 2 || dims(p.b).size() != 2)
      throw Error(Code::kUnsupportedTensor,
                  "the factors are no matrices: layers of other kinds are not merged")
          .found(cat(shape_text(p.a), " and ", shape_text(p.b)))
          .help("merge it where it was trained (merge_and_unload), and save the model");
    if (dims(p.a)[0] != dims(p.b)[1])
      throw Error(Code::kSourceShape, "the two factors have different ranks")
          .expected("A [r, in] and B [out, r]")
          .found(cat(shape_text(p.a), " and ", shape_text(p.b)));
    return {p.a, p.b, dims(p.b)[0], dims(p.a)[1], dims(p.a)[0]};
  }

  void check_rank(const std::string& name, const FactorPair& f) const {
    if (f.ranks == config_.rank_of(name)) return;
    throw Error(Code::kSourceShape, "the factors do not have the rank that the config gives")
        .expected(cat("rank ", config_.rank_of(name)))
        .found(cat("rank ", f.ranks));
  }

  // The weight of a module that the config gives factors: a matrix [rows, columns].
  i64 weight(const std::string& name, i64 rows, i64 columns, i64 factor) {
    const bool tied_too = config_.keeps_tie && is_head_weight(cat(name, ".weight"));  // PEFT adds it
    if (!tied_too && config_.rules.targeted(name) == false)
      throw Error(
          Code::kUnaccounted,
          "the adapter has factors of a module that its config leaves out, and PEFT does not load them")
          .expected(
              "a module that target_modules, layers_to_transform, exclude_modules and modules_to_save choose")
          .found(escaped(adapter_.name(factor)))
          .help(
              "adapter_config.json and adapter_model.safetensors belong to two adapters, or the config was "
              "edited: take both from one save");
    i64 t = target(cat(name, ".weight"));
    if (t < 0) refuse_unused(factor);
    const i64 wanted[] = {rows, columns};
    std::span<const i64> found = dims_of(change(t));
    if (!std::ranges::equal(found, wanted))
      throw Error(Code::kSourceShape, "the factors do not fit the weight of the base")
          .expected(cat(dims_to_string(wanted), config_.weights_turned ? ", as fan_in_fan_out says" : ""))
          .found(dims_to_string(found))
          .help(kOtherBase);
    return t;
  }

  // Rows of an embedding, or of an output layer, that were trained alone.
  void put_tokens(const std::string& name, i64 tokens) {
    const i64 t = target(cat(name, ".weight"));
    if (t < 0) refuse_unused(tokens);
    auto at = std::ranges::find_if(config_.tokens, [&](const LoraConfig::Tokens& of) {
      return of.module.empty() ? is_embedding_weight(cat(name, ".weight"))
                               : name == of.module || name.ends_with(cat(".", of.module));
    });
    if (at == config_.tokens.end())
      throw Error(Code::kUnaccounted, "the config does not say which tokens the rows of the adapter are for")
          .expected("trainable_token_indices of the module")
          .found(escaped(adapter_.name(tokens)));
    AdaptedTensor& a = change(t);
    std::span<const i64> whole = dims_of(a);
    const i64 wanted[] = {std::ssize(at->rows), whole.size() == 2 ? whole[1] : 0};
    if (!std::ranges::equal(dims(tokens), wanted))
      throw Error(Code::kSourceShape, "the adapter does not have a row for each token of the config")
          .expected(dims_to_string(wanted))
          .found(shape_text(tokens));
    for (i64 row : at->rows)
      if (row < 0 || row >= whole[0])
        throw Error(Code::kSourceShape, "a token of the config is none of the base's vocabulary")
            .expected(cat("0 to ", whole[0] - 1))
            .found(row);
    a.tokens = tokens, a.token_rows = at->rows;
  }

  void pair_linear(const std::string& name, const AdapterModule& m) {
    if (m.pairs.size() != 1 || m.pairs.begin()->first != 0) refuse_unused(m.pairs.rbegin()->second.a);
    const FactorPair f = sized(m.pairs.begin()->second);
    check_rank(name, f);
    const bool turned = config_.weights_turned;
    const AdaptedFactors out{.a = f.a,
                             .b = f.b,
                             .magnitude = m.magnitude,
                             .scale = config_.scale_of(name),
                             .rank = f.ranks,
                             .turned = turned};
    const i64 t = turned ? weight(name, f.columns, f.rows, f.a) : weight(name, f.rows, f.columns, f.a);
    check_magnitude(m, f);
    add_factors(t, out);
    add_bias(name, m, f);
  }

  void check_magnitude(const AdapterModule& m, const FactorPair& f) const {
    if (config_.magnitudes != (m.magnitude >= 0))
      throw Error(Code::kUnaccounted, "the config and the tensors do not agree about magnitudes of rows")
          .expected(config_.magnitudes ? "lora_magnitude_vector, as use_dora says" : "none, as use_dora says")
          .found(config_.magnitudes ? "none" : "lora_magnitude_vector");
    if (m.magnitude < 0) return;
    const i64 wanted[] = {f.rows};
    if (!std::ranges::equal(dims(m.magnitude), wanted))
      throw Error(Code::kSourceShape, "the magnitudes are not one for each output of the weight")
          .expected(dims_to_string(wanted))
          .found(shape_text(m.magnitude));
  }

  void add_bias(const std::string& name, const AdapterModule& m, const FactorPair& f) {
    if (config_.biases != (m.bias >= 0))
      throw Error(Code::kUnaccounted, "the config and the tensors do not agree about a bias of the factors")
          .expected(config_.biases ? "lora_B.bias, as lora_bias says" : "none, as lora_bias says")
          .found(config_.biases ? "none" : "lora_B.bias");
    if (m.bias < 0) return;
    i64 t = base_.find(cat(name, ".bias"));
    if (t < 0)
      throw Error(Code::kUnaccounted,
                  "the factors have a bias, and the module of the base has none to add it to")
          .help(kOtherBase);
    const i64 wanted[] = {f.rows};
    if (!std::ranges::equal(dims(m.bias), wanted) || !std::ranges::equal(base_.store().dims(t), wanted))
      throw Error(Code::kSourceShape, "the bias of the factors does not fit that of the base")
          .expected(dims_to_string(wanted))
          .found(cat(shape_text(m.bias), " and ", dims_to_string(base_.store().dims(t))));
    AdaptedTensor& a = change(t);
    a.added = m.bias, a.added_scale = config_.scale_of(name);
  }

  void refuse_extras(const AdapterModule& m, const char* what, bool magnitudes) const {
    if (m.bias >= 0 || (m.magnitude >= 0 && !magnitudes))
      throw Error(Code::kUnsupportedTensor, cat("a bias or magnitudes of ", what, " are not computed"))
          .help("merge it where it was trained (merge_and_unload), and save the model");
  }

  void pair_embedding(const std::string& name, const AdapterModule& m) {
    refuse_extras(m, "an embedding", true);
    check_whole(m.embedding);
    const FactorPair f = sized(m.embedding);
    check_rank(name, f);
    check_magnitude(m, f);
    // PEFT rounds the product, unless magnitudes follow.
    add_factors(weight(name, f.columns, f.rows, f.a), {.a = f.a,
                                                       .b = f.b,
                                                       .magnitude = m.magnitude,
                                                       .scale = config_.scale_of(name),
                                                       .rank = f.ranks,
                                                       .turned = true,
                                                       .rounded = m.magnitude < 0});
  }

  void pair_parameters_of(const std::string& name, const AdapterModule& m,
                          const std::vector<std::string>& parameters) {
    refuse_extras(m, "a parameter", false);
    std::vector<FactorPair> pairs;
    for (const auto& [depth, p] : m.pairs) pairs.push_back(sized(p));
    for (const AdaptedTensor& a : pair_parameters(base_, config_, name, parameters, pairs))
      add_factors(a.tensor, a.factors[0]);
  }

  void check_types(const AdaptedTensor& a) const {
    if (is_computed_type(base_.store().dtype(a.from))) return;
    throw Error(Code::kUnsupportedTensor, "the adapter changes a tensor of a type that is not computed with")
        .tensor(base_.store().name(a.from))
        .expected("float32, bfloat16 or float16")
        .found(dtype_name(base_.store().dtype(a.from)));
  }

  // All tensors of the vocabulary have one number of rows in the result.
  void check_vocabulary(const AdaptedModel& model) const {
    std::optional<i64> rows;
    for (const AdaptedTensor& a : model.tensors)
      if (!std::ranges::equal(dims_of(a), base_.store().dims(a.from))) rows = dims_of(a)[0];
    if (!rows) return;
    for (i64 t = 0; t < base_.store().tensor_count(); t++) {
      const std::string_view name = base_.store().name(t);
      if (!is_embedding_weight(name) && !is_head_weight(name)) continue;
      auto at = adapted_.find(t);
      refuse_other_rows(name, at == adapted_.end() ? base_.store().dims(t) : dims_of(at->second), *rows);
    }
    if (auto at = adapted_.find(head_); at != adapted_.end())
      refuse_other_rows(at->second.name, dims_of(at->second), *rows);
  }

  static void refuse_other_rows(std::string_view name, std::span<const i64> dims, i64 rows) {
    if (dims.size() == 2 && dims[0] == rows) return;
    throw Error(Code::kSourceShape,
                "the adapter changes the number of rows of one tensor of the vocabulary, and not of another")
        .tensor(name)
        .expected(cat(rows, " rows, as the adapter has them"))
        .found(dims_to_string(dims))
        .help("PEFT saves both with save_embedding_layers=True after resize_token_embeddings");
  }

  void refuse_unlike_copies() const {
    const std::vector<bool> same = have_same_bytes(adapter_, copies_, 1);
    for (std::size_t i = 0; i < copies_.size(); i++)
      if (!same[i])
        throw Error(
            Code::kUnaccounted,
            "the adapter has other values for the output layer than for the embedding, which the model ties")
            .tensor(adapter_.name(copies_[i].second))
            .expected(cat("the values of ", escaped(adapter_.name(copies_[i].first))))
            .help("modules_to_save without ensure_weight_tying gives the output layer values of its own");
  }

  const BaseTensors base_;
  const Store& adapter_;
  const LoraConfig& config_;
  std::map<std::string, AdapterModule> modules_;
  const Vocabulary vocabulary_;
  std::map<i64, AdaptedTensor> adapted_;  // by the tensor of the result
  i64 head_ = -1;                         // an output layer that the base has not
  std::string head_name_;
  bool shared_ = false;                      // factors change a tied embedding
  std::vector<std::string> saved_;           // names of tensors that are replaced
  std::vector<std::pair<i64, i64>> copies_;  // of the adapter: two that replace one tensor
};

}  // namespace

AdaptedModel pair_adapter(const Store& base, const Store& adapter, const LoraConfig& config,
                          const BaseFacts& facts) {
  return Pairing(base, adapter, config, facts).run();
}

}  // namespace mckpt::impl
