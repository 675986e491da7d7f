// Without a base a module is taken for one whose parameters have factors where target_parameters may name
// some of it, and target_modules does not name the module.
#include "hf/adapter/lora/factors.h"

#include <algorithm>
#include <span>
#include <string_view>

#include "core/base/text.h"
#include "core/items/shape.h"
#include "hf/adapter/lora/lora_config.h"
#include "hf/adapter/lora/parameters.h"
#include "hf/adapter/lora/vocabulary.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr const char* kOfTwo =
    "adapter_config.json and adapter_model.safetensors belong to two adapters, or the config was edited: take both from one save";

bool has_embedding(const AdapterModule& m) { return m.embedding.a >= 0 || m.embedding.b >= 0; }

// "mlp.experts" and "gate_up_proj" of "mlp.experts.gate_up_proj"; "" and the name of one without a module.
std::pair<std::string_view, std::string_view> split_parameter(std::string_view target) {
  const std::size_t dot = target.rfind('.');
  if (dot == target.npos) return {"", target};
  return {target.substr(0, dot), target.substr(dot + 1)};
}

bool may_be_of(std::string_view target, std::string_view module) {
  const std::string_view front = split_parameter(target).first;
  return front.empty() || module == front || module.ends_with(cat(".", front));
}

}  // namespace

void Factors::check_whole(const AdapterModule::Pair& pair) const {
  if (pair.a >= 0 && pair.b >= 0) return;
  throw Error(Code::kUnaccounted, "one of the two factors of a module is missing")
      .expected("lora_A and lora_B")
      .found(escaped(adapter_.name(std::max(pair.a, pair.b))))
      .help("the adapter was not saved whole: save it again");
}

void Factors::check_parts(const AdapterModule& m) const {
  if (has_embedding(m)) check_whole(m.embedding);
  for (const auto& [depth, pair] : m.pairs) check_whole(pair);
  if (has_embedding(m) && !m.pairs.empty())
    throw Error(Code::kUnaccounted, "the module has factors of an embedding and of a matrix");
  if (!has_embedding(m) && m.pairs.empty())
    throw Error(Code::kUnaccounted, "a module of the adapter has no factors")
        .expected("lora_A and lora_B")
        .found(m.bias >= 0 ? "lora_B.bias" : "lora_magnitude_vector");
}

FactorPair Factors::sized(const AdapterModule::Pair& pair) const {
  const std::span<const i64> a = adapter_.dims(pair.a), b = adapter_.dims(pair.b);
  const std::string shapes = cat(dims_to_string(a), " and ", dims_to_string(b));
  if (a.size() != 2 || b.size() != 2)
    throw Error(Code::kUnsupportedTensor, "the factors are no matrices: layers of other kinds are not merged")
        .found(shapes)
        .help("merge it where it was trained (merge_and_unload), and save the model");
  if (a[0] != b[1])
    throw Error(Code::kSourceShape, "the two factors have different ranks")
        .expected("A [r, in] and B [out, r]")
        .found(shapes);
  return {pair.a, pair.b, b[0], a[1], a[0]};
}

void Factors::check_rank(const std::string& module, const FactorPair& f) const {
  if (f.ranks == config_.rank_of(module)) return;
  throw Error(Code::kSourceShape, "the factors do not have the rank that the config gives")
      .expected(cat("rank ", config_.rank_of(module)))
      .found(cat("rank ", f.ranks));
}

void Factors::check_chosen(const std::string& module, i64 factor, bool tied) const {
  const bool tied_too = tied && ties_factors(config_, names_);
  if (tied_too || config_.rules.targeted(module) != false) return;
  throw Error(Code::kUnaccounted,
              "the adapter has factors of a module that its config leaves out, and PEFT does not load them")
      .expected(
          "a module that target_modules, layers_to_transform, exclude_modules and modules_to_save choose")
      .found(escaped(adapter_.name(factor)))
      .help(kOfTwo);
}

void Factors::check_magnitude(const AdapterModule& m, const FactorPair& f) const {
  if (config_.magnitudes != (m.magnitude >= 0))
    throw Error(Code::kUnaccounted, "the config and the tensors do not agree about magnitudes of rows")
        .expected(config_.magnitudes ? "lora_magnitude_vector, as use_dora says" : "none, as use_dora says")
        .found(config_.magnitudes ? "none" : "lora_magnitude_vector");
  if (m.magnitude < 0) return;
  const i64 wanted[] = {f.rows};
  if (!std::ranges::equal(adapter_.dims(m.magnitude), wanted))
    throw Error(Code::kSourceShape, "the magnitudes are not one for each output of the weight")
        .expected(dims_to_string(wanted))
        .found(dims_to_string(adapter_.dims(m.magnitude)));
}

void Factors::check_bias(const AdapterModule& m) const {
  if (config_.biases == (m.bias >= 0)) return;
  throw Error(Code::kUnaccounted, "the config and the tensors do not agree about a bias of the factors")
      .expected(config_.biases ? "lora_B.bias, as lora_bias says" : "none, as lora_bias says")
      .found(config_.biases ? "none" : "lora_B.bias");
}

void Factors::require_tokens(bool may_be_tied) const {
  auto has_rows = [&](const LoraConfig::Tokens& of) {
    return std::ranges::any_of(names_.modules,
                               [&](const auto& m) { return m.second.tokens >= 0 && of.is_for(m.first); });
  };
  // Rows of the same tokens of two tied modules are one tensor in PEFT, which is saved for the embedding.
  auto has_rows_of_embedding = [&](const LoraConfig::Tokens& of) {
    return may_be_tied && is_head_weight(cat(of.module, ".weight")) &&
           std::ranges::any_of(config_.tokens, [&](const LoraConfig::Tokens& other) {
             return other.is_of_embedding() && other.rows == of.rows && has_rows(other);
           });
  };
  for (const LoraConfig::Tokens& of : config_.tokens)
    if (!has_rows(of) && !has_rows_of_embedding(of))
      throw Error(Code::kUnaccounted,
                  "the config names tokens that were trained, and the adapter has no rows of them")
          .expected(cat("token_adapter.trainable_tokens_delta of ",
                        of.module.empty() ? "the embedding" : escaped(of.module), ", ",
                        counted(std::ssize(of.rows), "row")))
          .found("none")
          .help(kOfTwo);
}

bool Factors::may_have_parameters(const std::string& module) const {
  return config_.rules.targeted(module) != true &&
         std::ranges::any_of(config_.parameters,
                             [&](const std::string& target) { return may_be_of(target, module); });
}

void Factors::check_parameters(const std::string& module, const AdapterModule& m) const {
  for (const auto& [depth, pair] : m.pairs) {
    const FactorPair f = sized(pair);
    const bool fits = std::ranges::any_of(config_.parameters, [&](const std::string& target) {
      const i64 rank = config_.rank_of(cat(module, ".", split_parameter(target).second));
      return may_be_of(target, module) && f.ranks % rank == 0;
    });
    if (fits) continue;
    throw Error(Code::kSourceShape, "the factors do not have the rank that the config gives")
        .expected(cat("rank ", config_.rank, " for each expert"))
        .found(cat("rank ", f.ranks));
  }
}

void Factors::check(const std::string& module, const AdapterModule& m) const {
  if (m.tokens >= 0 && !has_embedding(m) && m.pairs.empty() && m.bias < 0 && m.magnitude < 0) return;
  check_parts(m);
  if (!has_embedding(m) && may_have_parameters(module)) return check_parameters(module, m);
  const AdapterModule::Pair& pair = has_embedding(m) ? m.embedding : m.pairs.begin()->second;
  check_chosen(module, pair.a, is_head_weight(cat(module, ".weight")));
  const FactorPair f = sized(pair);
  check_rank(module, f);
  check_magnitude(m, f);
  if (!has_embedding(m)) check_bias(m);
}

}  // namespace mckpt::impl
