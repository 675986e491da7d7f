// Gives every module of the adapter its tensors of the base.
#include "hf/adapter/lora/pairing.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "hf/adapter/lora/factors.h"
#include "hf/adapter/lora/lora_config.h"
#include "hf/adapter/lora/merged_checks.h"
#include "hf/adapter/lora/modules.h"
#include "hf/adapter/lora/parameters.h"
#include "hf/adapter/lora/settings.h"
#include "hf/adapter/lora/tied_factors.h"
#include "hf/adapter/lora/turned_weights.h"
#include "hf/adapter/lora/vocabulary.h"
#include "io/store/store.h"
#include "io/values/same_bytes.h"

namespace mckpt::impl {
namespace {

constexpr const char* kMergeThere = "merge it where it was trained (merge_and_unload), and save the model";
constexpr const char* kOtherBase =
    "check that the base is the model that was trained, with the names of its own folder";

class Pairing {
 public:
  Pairing(const Store& base, const Store& adapter, const LoraConfig& config, const BaseFacts& facts)
      : base_(base, facts),
        adapter_(adapter),
        config_(config),
        facts_(facts),
        names_(adapter_names(adapter)),
        factors_(adapter, config, names_),
        vocabulary_(base_, facts, names_) {}

  AdaptedModel run() {
    if (names_.unused >= 0) refuse_unused(names_.unused);
    for (const auto& [tensor, own] : names_.whole) replace(tensor, own);
    for (const std::string& name : in_order())
      with_tensor(name, [&] { pair(name, names_.modules.at(name)); });
    factors_.require_tokens(!vocabulary_.tied().empty());
    vocabulary_.refuse_rows_beside_factors(names_, adapter_);
    AdaptedModel out;
    out.untied = !own_.empty();
    divide(vocabulary_, own_, base_.store().tensor_count(), adapted_);
    for (auto& [tensor, adapted] : adapted_) out.tensors.push_back(adapted);
    check_merged(base_, adapter_, out, vocabulary_);
    refuse_unlike_copies();
    for (const auto& [one, other] : pairs_) require_one_pair(adapter_, one, other);
    AdaptedParts parts{std::vector<bool>(static_cast<std::size_t>(base_.store().tensor_count())), saved_};
    for (const AdaptedTensor& a : out.tensors)
      for (i64 t : {a.from, a.tensor})
        if (!a.factors.empty() && t < std::ssize(parts.factors)) parts.factors[t] = true;
    out.untouched = check_settings(config_, base_, parts);
    if (!out.untouched.empty()) out.notes.push_back(out.untouched);
    if (corrected_ > 0)
      out.notes.push_back(
          cat("fan_in_fan_out of the config is ", config_.weights_turned ? "true" : "false", ", and ",
              counted(corrected_, "weight"), " of the base ", corrected_ == 1 ? "is" : "are", " ",
              config_.weights_turned ? "[out, in]" : "[in, out]", ": merged as what they are, as PEFT does"));
    if (!pairs_.empty())
      out.notes.push_back(
          "the output layer of the base is its embedding, and the factors that the adapter has of both are one pair (ensure_weight_tying): added once, as the model computed with them while it was trained; merge_and_unload() may add them twice");
    else if (shared_)
      out.notes.push_back(
          "the output layer of the base is its embedding: what the adapter adds to either is in both, as merge_and_unload makes it, though the model computed with them apart while it was trained");
    if (rows_of_both_)
      out.notes.push_back(
          "the output layer of the base is its embedding: rows of tokens of both are in it, those of the output layer last, as merge_and_unload puts them, though the model computed with them apart while it was trained");
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

  // The modules of the adapter. Where several are of one parameter, PEFT merges them in the model's order.
  std::vector<std::string> in_order() const {
    std::vector<std::string> out;
    for (const auto& entry : names_.modules) out.push_back(entry.first);
    std::ranges::stable_sort(out, {}, [&](const std::string& name) { return vocabulary_.place(name); });
    return out;
  }

  void replace(i64 t, const std::string& own) {
    const i64 b = target(own);
    if (b < 0) refuse_unused(t);
    std::span<const i64> base = base_.store().dims(b);
    // After resize_token_embeddings the adapter has both tensors of the vocabulary whole.
    const bool resized = (is_embedding_weight(own) || is_head_weight(own) || vocabulary_.tied(own)) &&
                         base.size() == 2 && dims(t).size() == 2 && dims(t)[1] == base[1] && dims(t)[0] > 0;
    if (!resized && !std::ranges::equal(dims(t), base))
      throw Error(Code::kSourceShape, "a tensor of the adapter replaces one of another shape")
          .tensor(own)
          .expected(dims_to_string(base))
          .found(shape_text(t));
    saved_.push_back(own);
    const TiedTensor::Name* tied = vocabulary_.entry(own);
    if (tied && !ties_saved(config_) && config_.rules.saved_whole(own.substr(0, own.rfind('.')))) {
      if (!own_.emplace(tied, t).second) refuse_unused(t);
      return;
    }
    AdaptedTensor& a = change(b);
    // A tied tensor may be there under all of its names.
    if (a.replaced >= 0 && tied)
      copies_.emplace_back(a.replaced, t);
    else if (a.replaced >= 0)
      refuse_unused(t);
    a.replaced = t;
  }

  // The tensor of the base that a name of the adapter means. -1: there is none.
  i64 target(const std::string& name) const {
    const TiedTensor* tied = vocabulary_.tied(name);
    return tied ? tied->tensor : base_.find(name);
  }

  // The shape that the tensor has in the result.
  std::span<const i64> dims_of(const AdaptedTensor& a) const {
    return a.replaced >= 0 ? dims(a.replaced) : base_.store().dims(a.from);
  }

  [[noreturn]] void refuse_unused(i64 t) const {
    std::string_view name = adapter_.name(t), own = name.substr(std::min(kAdapterPrefix.size(), name.size()));
    if (base_.rearranged(cat(own.substr(0, own.find(".lora_")), ".weight")) || base_.rearranged(own))
      throw Error(
          Code::kUnsupportedTensor,
          "the folder of the base has the items of this tensor in another order, or in one tensor with others, and an adapter of it is not computed")
          .tensor(name)
          .help(kMergeThere);
    Error e(Code::kUnaccounted, "a tensor of the adapter belongs to no tensor of its base");
    e.tensor(name);
    if (const std::string help = help_of_named_factor(own); !help.empty()) throw e.help(help);
    e.help(kOtherBase);
    if (const std::string_view module = own.substr(0, own.rfind('.')); config_.rules.saved_whole(module))
      e.help(cat(
          "modules_to_save has ", escaped(module),
          ", which this base has not: the base is the model with it; a head for ",
          dims(t).empty() ? 0 : dims(t)[0],
          " labels on a language model is made by AutoModelForSequenceClassification, whose save_pretrained() writes the base"));
    if (std::string_view near = nearest(own, base_.names()); !near.empty())
      e.note(cat("the nearest name in the base is ", escaped(near)));
    throw e;
  }

  // The entry of a tensor of the base.
  AdaptedTensor& change(i64 tensor) {
    AdaptedTensor& a = adapted_[tensor];
    a.tensor = a.from = tensor;
    return a;
  }

  // Adds factors to what the tensor has. Several pairs may only belong to a tied tensor, and are one pair
  // where the config ties the factors, too.
  void add_factors(i64 tensor, const AdaptedFactors& factors, bool tied = false) {
    AdaptedTensor& a = change(tensor);
    if (tied && !a.factors.empty() && ties_factors(config_, names_)) {
      pairs_.emplace_back(a.factors[0], factors);
      return;
    }
    shared_ |= tied;
    if ((!a.factors.empty() && !tied) || a.added >= 0)
      throw Error(Code::kUnaccounted, "two pairs of factors change one tensor of the base")
          .tensor(base_.store().name(tensor));
    a.factors.push_back(factors);
  }

  void pair(const std::string& name, const AdapterModule& m) {
    const bool embedding = m.embedding.a >= 0 || m.embedding.b >= 0;
    if (m.tokens >= 0) put_tokens(name, m.tokens);
    if (m.tokens >= 0 && !embedding && m.pairs.empty() && m.bias < 0 && m.magnitude < 0) return;
    factors_.check_parts(m);
    if (embedding) pair_embedding(name, m);
    std::vector<std::string> parameters = targeted_parameters(base_, config_, name);
    if (!parameters.empty() && !m.pairs.empty()) {
      pair_parameters_of(name, m, parameters);
    } else if (!m.pairs.empty()) {
      pair_linear(name, m);
    }
  }

  static void check_fit(std::span<const i64> found, std::span<const i64> wanted) {
    if (!std::ranges::equal(found, wanted))
      throw Error(Code::kSourceShape, "the factors do not fit the weight of the base")
          .expected(dims_to_string(wanted))
          .found(dims_to_string(found))
          .help(kOtherBase);
  }

  // The weight of a module that the config gives factors: a matrix [rows, columns].
  i64 weight(const std::string& name, i64 rows, i64 columns, i64 factor) {
    factors_.check_chosen(name, factor, vocabulary_.tied(cat(name, ".weight")));
    i64 t = target(cat(name, ".weight"));
    if (t < 0) refuse_unused(factor);
    const i64 wanted[] = {rows, columns};
    check_fit(dims_of(change(t)), wanted);
    return t;
  }

  // Rows of an embedding, or of an output layer, that were trained alone.
  void put_tokens(const std::string& name, i64 tokens) {
    const i64 t = target(cat(name, ".weight"));
    if (t < 0) refuse_unused(tokens);
    const bool tied = vocabulary_.tied(cat(name, ".weight"));
    auto at =
        std::ranges::find_if(config_.tokens, [&](const LoraConfig::Tokens& of) { return of.is_for(name); });
    // An output layer that follows the embedding needs no entry.
    if (at == config_.tokens.end() && tied)
      at = std::ranges::find_if(config_.tokens, &LoraConfig::Tokens::is_of_embedding);
    if (at == config_.tokens.end())
      throw Error(Code::kUnaccounted, "the config does not say which tokens the rows of the adapter are for")
          .expected("trainable_token_indices of the module")
          .found(escaped(adapter_.name(tokens)));
    const bool replaced = change(t).replaced >= 0 && config_.rules.saved_whole(name);
    if (replaced || own_.contains(vocabulary_.entry(cat(name, ".weight"))))
      throw Error(
          Code::kUnsupportedTensor,
          "the adapter has rows of tokens of a module that it has whole, too, which PEFT does not merge into one")
          .expected("either of them")
          .found(escaped(adapter_.name(tokens)))
          .help(kMergeThere);
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
    if (a.tokens.size() == 1 && tied && a.tokens[0].rows == at->rows) {
      copies_.emplace_back(a.tokens[0].tensor, tokens);
      return;
    }
    if (!a.tokens.empty() && (!tied || config_.keeps_tie || a.tokens.size() > 1))
      throw Error(Code::kUnaccounted, "rows of two modules are for one tensor of the base, which ties them")
          .tensor(base_.store().name(t))
          .expected("rows of the embedding or of the output layer")
          .found(cat(escaped(adapter_.name(a.tokens[0].tensor)), " and ", escaped(adapter_.name(tokens))))
          .help(kMergeThere);
    rows_of_both_ |= !a.tokens.empty();
    a.tokens.push_back({tokens, at->rows});
  }

  void pair_linear(const std::string& name, const AdapterModule& m) {
    if (m.pairs.size() != 1 || m.pairs.begin()->first != 0) refuse_unused(m.pairs.rbegin()->second.a);
    const FactorPair f = factors_.sized(m.pairs.begin()->second);
    factors_.check_rank(name, f);
    const i64 stored = target(cat(name, ".weight"));
    if (stored < 0) return pair_parts(name, m, f);
    const bool turned =
        is_turned_weight(name, facts_, config_.weights_turned, f.rows, f.columns, dims_of(change(stored)));
    corrected_ += turned != config_.weights_turned;
    const AdaptedFactors out{.a = f.a,
                             .b = f.b,
                             .magnitude = m.magnitude,
                             .scale = config_.scale_of(name),
                             .rank = f.ranks,
                             .turned = turned};
    const i64 t = turned ? weight(name, f.columns, f.rows, f.a) : weight(name, f.rows, f.columns, f.a);
    factors_.check_magnitude(m, f);
    add_factors(t, out, vocabulary_.tied(cat(name, ".weight")));
    add_bias(name, m, f);
  }

  // A matrix of which the folder has parts, one below the other.
  void pair_parts(const std::string& name, const AdapterModule& m, const FactorPair& f) {
    std::vector<i64> parts;
    i64 rows = 0;
    for (const std::string& part : base_.parts(cat(name, ".weight"))) {
      parts.push_back(base_.find(part));
      if (parts.back() < 0 || base_.store().dims(parts.back()).size() != 2) refuse_unused(f.a);
      const i64 wanted[] = {base_.store().dims(parts.back())[0], f.columns};
      check_fit(base_.store().dims(parts.back()), wanted);
      rows += wanted[0];
    }
    if (parts.empty()) refuse_unused(f.a);
    const i64 all[] = {rows, f.columns}, wanted[] = {f.rows, f.columns};
    check_fit(all, wanted);
    factors_.check_chosen(name, f.a, false);
    refuse_extras(m, "a matrix that the folder has in parts", true);
    factors_.check_magnitude(m, f);
    AdaptedFactors out{
        .a = f.a, .b = f.b, .magnitude = m.magnitude, .scale = config_.scale_of(name), .rank = f.ranks};
    for (i64 t : parts) {
      add_factors(t, out);
      out.first_row += base_.store().dims(t)[0];
    }
  }

  void add_bias(const std::string& name, const AdapterModule& m, const FactorPair& f) {
    factors_.check_bias(m);
    if (m.bias < 0) return;
    const i64 t = target(cat(name, ".bias"));
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
    if (a.added >= 0)
      throw Error(
          Code::kUnsupportedTensor,
          "the adapter has factors with a bias for two modules whose bias the base ties, and the sum of both is not computed")
          .help(kMergeThere);
    a.added = m.bias, a.added_scale = config_.scale_of(name);
  }

  void refuse_extras(const AdapterModule& m, const char* what, bool magnitudes) const {
    if (m.bias >= 0 || (m.magnitude >= 0 && !magnitudes))
      throw Error(Code::kUnsupportedTensor, cat("a bias or magnitudes of ", what, " are not computed"))
          .help(kMergeThere);
  }

  void pair_embedding(const std::string& name, const AdapterModule& m) {
    refuse_extras(m, "an embedding", true);
    const FactorPair f = factors_.sized(m.embedding);
    factors_.check_rank(name, f);
    factors_.check_magnitude(m, f);
    // PEFT rounds the product, unless magnitudes follow.
    add_factors(weight(name, f.columns, f.rows, f.a),
                {.a = f.a,
                 .b = f.b,
                 .magnitude = m.magnitude,
                 .scale = config_.scale_of(name),
                 .rank = f.ranks,
                 .turned = true,
                 .rounded = m.magnitude < 0},
                vocabulary_.tied(cat(name, ".weight")));
  }

  void pair_parameters_of(const std::string& name, const AdapterModule& m,
                          const std::vector<std::string>& parameters) {
    refuse_extras(m, "a parameter", false);
    std::vector<FactorPair> pairs;
    for (const auto& [depth, p] : m.pairs) pairs.push_back(factors_.sized(p));
    for (const AdaptedTensor& a : pair_parameters(base_, config_, name, parameters, pairs))
      add_factors(a.tensor, a.factors[0]);
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
  const BaseFacts& facts_;
  const AdapterNames names_;
  const Factors factors_;
  const Vocabulary vocabulary_;
  std::map<i64, AdaptedTensor> adapted_;  // by the tensor of the base, and then of the result
  OwnValues own_;
  bool shared_ = false;                      // factors change a tied embedding
  bool rows_of_both_ = false;                // and so do rows of its two modules
  i64 corrected_ = 0;                        // weights that fan_in_fan_out says otherwise
  std::vector<std::string> saved_;           // names of tensors that are replaced
  std::vector<std::pair<i64, i64>> copies_;  // of the adapter: two that replace one tensor
  std::vector<std::pair<AdaptedFactors, AdaptedFactors>> pairs_;  // that are one by the config
};

}  // namespace

AdaptedModel pair_adapter(const Store& base, const Store& adapter, const LoraConfig& config,
                          const BaseFacts& facts) {
  return Pairing(base, adapter, config, facts).run();
}

}  // namespace mckpt::impl
