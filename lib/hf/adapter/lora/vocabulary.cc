// A base of a class that is not known, or without a config, is judged by words of names, and by what the
// adapter has: a head in it is a head of the class.
#include "hf/adapter/lora/vocabulary.h"

#include <algorithm>
#include <utility>

#include "core/base/error.h"
#include "core/base/text.h"
#include "hf/adapter/lora/lora_config.h"
#include "hf/adapter/lora/modules.h"
#include "hf/adapter/lora/pairing.h"
#include "hf/adapter/lora/parameters.h"
#include "hf/adapter/lora/tied_classes.h"
#include "hf/config/token_modules.h"
#include "io/store/store.h"
#include "io/values/same_bytes.h"

namespace mckpt::impl {
namespace {

// The names of modules by which PEFT 0.21 finds the vocabulary in a config, and no others.
constexpr std::string_view kWordsOfPeft[] = {"embed_tokens", "lm_head"};

template <std::size_t N>
bool has(const std::string_view (&table)[N], std::string_view text) {
  return std::ranges::find(table, text) != std::end(table);
}

std::string_view last_part(std::string_view module) { return module.substr(module.rfind('.') + 1); }

// The module of a weight; "" for another tensor.
std::string_view module_of(std::string_view name) {
  constexpr std::string_view kWeight = ".weight";
  return name.ends_with(kWeight) ? name.substr(0, name.size() - kWeight.size()) : "";
}

bool is_word_of_peft(std::string_view name) { return has(kWordsOfPeft, last_part(name)); }

// The names of the tensors that the adapter is for.
std::vector<std::string> targets_of(const AdapterNames& names) {
  std::vector<std::string> out;
  for (const auto& [tensor, own] : names.whole) out.push_back(own);
  for (const auto& [module, parts] : names.modules) {
    out.push_back(cat(module, ".weight"));
    if (parts.bias >= 0) out.push_back(cat(module, ".bias"));
  }
  return out;
}

// Leaves the names out that the base has with values of their own: transformers does not tie these, whatever
// the config says.
void leave_others_out(TiedTensor& tied, const Store& store) {
  std::vector<std::pair<i64, i64>> pairs;
  for (const TiedTensor::Name& n : tied.names)
    if (n.tensor >= 0 && n.tensor != tied.tensor) pairs.emplace_back(tied.tensor, n.tensor);
  const std::vector<bool> same = have_same_bytes(store, pairs, 1);
  for (std::size_t i = 0; i < pairs.size(); i++)
    if (!same[i])
      std::erase_if(tied.names, [&](const TiedTensor::Name& n) { return n.tensor == pairs[i].second; });
}

}  // namespace

bool is_embedding_weight(std::string_view name) { return has(kEmbeddingModules, last_part(module_of(name))); }
bool is_head_weight(std::string_view name) { return has(kHeadModules, last_part(module_of(name))); }

bool ties_saved(const LoraConfig& config) {
  return config.keeps_tie && std::ranges::any_of(config.rules.saved, is_word_of_peft);
}

bool ties_factors(const LoraConfig& config, const AdapterNames& names) {
  if (!config.keeps_tie || ties_saved(config)) return false;
  const ModuleNames& targets = config.rules.targets;
  const bool by_word =
      targets.whole ? std::ranges::any_of(kWordsOfPeft,
                                          [&](std::string_view word) { return targets.match(word) == true; })
                    : std::ranges::any_of(targets.names, is_word_of_peft);
  return by_word || std::ranges::any_of(names.modules, [&](const auto& module) {
           return module.second.embedding.a >= 0 && config.rules.targeted(module.first) != false;
         });
}

Vocabulary::Vocabulary(const BaseTensors& base, const BaseFacts& facts, const AdapterNames& names)
    : architecture_(facts.architecture) {
  known_ = tied_class(architecture_).has_value() && of_class(base, facts, names);
  if (!known_ && facts.tied != false) by_words(base, names);
}

// False if the base has none of the names, as where the class has a model of any class in it.
bool Vocabulary::of_class(const BaseTensors& base, const BaseFacts& facts, const AdapterNames& names) {
  const TiedClass ties = *tied_class(architecture_);
  if (!ties.fixed && facts.tied == false) return true;
  bool found = ties.parameters.empty();
  // A name that the folder has not is one of another tensor in any case. One that it has, is if the config
  // ties it.
  const bool says_so = ties.fixed || facts.tied.value_or(ties.by_default);
  const std::vector<std::string> targets = targets_of(names);
  for (const std::vector<std::string_view>& parameter : ties.parameters) {
    TiedTensor tied{-1, {}};
    for (std::string_view name : parameter) {
      const i64 t = base.find(name);
      if (t >= 0 && tied.tensor >= 0 && !says_so) continue;
      if (t >= 0 && tied.tensor < 0) tied.tensor = t;
      tied.names.push_back({std::string(name), base.on_disk(name), t});
    }
    if (tied.tensor < 0) continue;
    found = true;
    const bool touched = std::ranges::any_of(tied.names, [&](const TiedTensor::Name& n) {
      return std::ranges::find(targets, n.memory) != targets.end() ||
             std::ranges::find(targets, n.disk) != targets.end();
    });
    if (touched) leave_others_out(tied, base.store());
    if (tied.names.size() > 1) tied_.push_back(std::move(tied));
  }
  fixed_ = found && ties.fixed;
  return found;
}

void Vocabulary::by_words(const BaseTensors& base, const AdapterNames& names) {
  TiedTensor tied{-1, {}};
  for (i64 t = 0; t < base.store().tensor_count(); t++) {
    const std::string name(base.store().name(t));
    if (is_head_weight(name) || name == "score.weight") return;
    if (!is_embedding_weight(name) || base.store().dims(t).size() != 2) continue;
    if (tied.tensor >= 0) return;
    tied = {t, {{name, name, t}}};
  }
  if (tied.tensor < 0) return;
  for (const std::string& name : targets_of(names))
    if (tied.names.size() == 1 && is_head_weight(name) && base.find(name) < 0)
      tied.names.push_back({name, base.on_disk(name), -1});
  tied_.push_back(std::move(tied));
}

const TiedTensor::Name* Vocabulary::entry(std::string_view name) const {
  for (const TiedTensor& tied : tied_)
    for (const TiedTensor::Name& n : tied.names)
      if (n.memory == name || n.disk == name) return &n;
  return nullptr;
}

const TiedTensor* Vocabulary::tied(std::string_view name) const {
  const TiedTensor::Name* n = entry(name);
  auto at = std::ranges::find_if(tied_, [&](const TiedTensor& of) {
    return n && std::ranges::any_of(of.names, [&](const TiedTensor::Name& other) { return &other == n; });
  });
  return at == tied_.end() ? nullptr : &*at;
}

i64 Vocabulary::place(std::string_view module) const {
  const std::string name = cat(module, ".weight");
  const TiedTensor::Name* n = entry(name);
  return n ? n - tied(name)->names.data() : -1;
}

void Vocabulary::require_divisible(const std::vector<std::string>& own) const {
  Error e(Code::kUnsupportedTensor, "");
  if (fixed_) {
    e = Error(
        Code::kUnsupportedTensor,
        cat("the adapter gives one of several tied tensors values of its own, and no folder of a ",
            escaped(architecture_), " can have them apart: the class ties them whatever config.json says"));
  } else {
    // A class with an embedding that two sides share has more names of it than any adapter need have.
    const bool guessed = std::ranges::any_of(tied_, [&](const TiedTensor& tied) {
      return tied.names.size() < 2 || last_part(module_of(tied.names[0].disk)) == "shared";
    });
    if (known_ || !guessed) return;
    e = Error(
        Code::kUnsupportedTensor,
        "the adapter gives the embedding values of its own, and the tensors that the base ties to it are not known");
    e.found(architecture_.empty() ? "no class in config.json of the base"
                                  : cat("the class ", escaped(architecture_)));
    e.expected("a class of transformers in config.json, or tie_word_embeddings false");
  }
  throw e.tensor(own.front())
      .help("merge it where it was trained (merge_and_unload), and use the model there");
}

// merge_and_unload() leaves the wrapper of the rows in such a model.
void Vocabulary::refuse_rows_beside_factors(const AdapterNames& names, const Store& adapter) const {
  for (const auto& [rows, of] : names.modules) {
    const TiedTensor* one = of.tokens < 0 ? nullptr : tied(cat(rows, ".weight"));
    if (!one) continue;
    for (const auto& [factors, other] : names.modules) {
      const bool has_factors = !other.pairs.empty() || other.embedding.a >= 0;
      if (rows == factors || !has_factors || tied(cat(factors, ".weight")) != one) continue;
      throw Error(
          Code::kUnsupportedTensor,
          "the adapter has rows of tokens of one module and factors of another, which the base ties, and merge_and_unload() of PEFT makes no model of the two")
          .tensor(adapter.name(of.tokens))
          .expected("either of them")
          .found(cat("factors of ", escaped(factors), ", too"));
    }
  }
}

void divide(const Vocabulary& vocabulary, const OwnValues& own, i64 tensors,
            std::map<i64, AdaptedTensor>& adapted) {
  if (!own.empty()) {
    std::vector<std::string> names;
    for (const auto& [name, tensor] : own) names.push_back(name->memory);
    vocabulary.require_divisible(names);
  }
  for (const TiedTensor& tied : vocabulary.tied()) {
    auto at = adapted.find(tied.tensor);
    const bool changed = at != adapted.end();
    if (own.empty() && !changed) continue;
    AdaptedTensor whole{.tensor = tied.tensor, .from = tied.tensor};
    if (changed) whole = at->second, adapted.erase(at);
    for (const TiedTensor::Name& n : tied.names) {
      auto values = own.find(&n);
      if (n.tensor < 0 ? own.empty() : !changed && values == own.end()) continue;
      AdaptedTensor a =
          values == own.end() ? whole : AdaptedTensor{.from = tied.tensor, .replaced = values->second};
      a.tensor = n.tensor < 0 ? tensors++ : n.tensor;
      if (n.tensor < 0) a.name = n.disk;
      adapted[a.tensor] = a;
    }
  }
}

}  // namespace mckpt::impl
