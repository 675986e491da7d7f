// Tries every way of giving the pairs to the parameters, and takes the one that the shapes allow.
#include "hf/adapter/lora/parameters.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "hf/adapter/lora/lora_config.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostParameters = 6;  // of a module: all orders of the pairs are tried

// A part of a parameter that is a tensor of its own for each expert.
struct Part {
  std::string_view parameter, name;
};
// As most models of transformers are on the disk.
constexpr Part kParts[] = {
    {"gate_up_proj", "gate_proj"}, {"gate_up_proj", "up_proj"}, {"down_proj", "down_proj"}};

std::string filled(std::string_view pattern, i64 expert) {
  const std::size_t at = pattern.find("{E}");
  if (at == pattern.npos) return "";
  return cat(pattern.substr(0, at), expert, pattern.substr(at + 3));
}

// A parameter of the base: matrices [rows, columns], in one tensor or in one for each expert and part.
struct Parameter {
  i64 experts = 1, rows = 0, columns = 0;
  std::vector<i64> stacks{};  // the tensors that are the parameter, rows of each matrix below others
  bool matrix = false;        // it is one matrix, whose output is first
  std::vector<std::vector<i64>> parts{};  // else, for each expert, its tensors one below the other
};

std::optional<Parameter> whole_parameter(const BaseTensors& base, const std::string& name) {
  i64 t = base.find(name);
  if (t < 0) return std::nullopt;
  std::span<const i64> dims = base.store().dims(t);
  if (dims.size() == 2) return Parameter{.rows = dims[0], .columns = dims[1], .stacks = {t}, .matrix = true};
  if (dims.size() == 3)
    return Parameter{.experts = dims[0], .rows = dims[1], .columns = dims[2], .stacks = {t}};
  return std::nullopt;
}

// A stack whose matrices the folder has in parts, each in a stack of its own.
std::optional<Parameter> stacked_parameter(const BaseTensors& base, const std::string& name) {
  Parameter out;
  for (const std::string& part : base.parts(name)) {
    const i64 t = base.find(part);
    if (t < 0 || base.store().dims(t).size() != 3) return std::nullopt;
    const std::span<const i64> dims = base.store().dims(t);
    if (out.stacks.empty()) out.experts = dims[0], out.columns = dims[2];
    if (dims[0] != out.experts || dims[2] != out.columns) return std::nullopt;
    out.rows += dims[1];
    out.stacks.push_back(t);
  }
  return out.stacks.empty() ? std::nullopt : std::optional(std::move(out));
}

// The tensors of one expert; empty if it is not there, or its parts are not matrices of equal width.
std::vector<i64> expert_parts(const BaseTensors& base, const std::vector<std::string>& patterns, i64 expert) {
  std::vector<i64> out;
  for (const std::string& pattern : patterns) {
    i64 t = base.find(filled(pattern, expert));
    if (t < 0 || base.store().dims(t).size() != 2) return {};
    out.push_back(t);
  }
  return out;
}

std::optional<Parameter> parameter_in_parts(const BaseTensors& base, std::string_view module,
                                            std::string_view name) {
  Parameter out{.experts = 0};
  std::vector<std::string> patterns = base.parts(cat(module, ".", name));
  if (expert_parts(base, patterns, 0).empty()) {
    patterns.clear();
    for (const Part& p : kParts)
      if (p.parameter == name) patterns.push_back(cat(module, ".{E}.", p.name, ".weight"));
  }
  for (std::vector<i64> parts; !(parts = expert_parts(base, patterns, out.experts)).empty(); out.experts++) {
    i64 rows = 0;
    for (i64 t : parts) rows += base.store().dims(t)[0];
    const i64 columns = base.store().dims(parts[0])[1];
    bool alike = std::ranges::all_of(parts, [&](i64 t) { return base.store().dims(t)[1] == columns; });
    if (out.experts == 0) out.rows = rows, out.columns = columns;
    if (!alike || rows != out.rows || columns != out.columns) return std::nullopt;
    out.parts.push_back(std::move(parts));
  }
  return out.experts > 0 ? std::optional(std::move(out)) : std::nullopt;
}

std::optional<Parameter> parameter_of(const BaseTensors& base, std::string_view module,
                                      std::string_view name) {
  if (std::optional<Parameter> p = whole_parameter(base, cat(module, ".", name))) return p;
  if (std::optional<Parameter> p = stacked_parameter(base, cat(module, ".", name))) return p;
  return parameter_in_parts(base, module, name);
}

// Whether an entry of target_parameters is the end of the parameter's name.
bool is_targeted(const LoraConfig& config, std::string_view name) {
  return std::ranges::any_of(config.parameters, [&](const std::string& end) {
    return name == end || name.ends_with(cat(".", end));
  });
}

// How a pair fits a parameter. Tensors of single experts have the output first, as all modules have.
struct Fit {
  bool plain = false, turned = false;
  bool any() const { return plain || turned; }
};

Fit fit(const FactorPair& pair, const Parameter& p, i64 rank) {
  if (pair.ranks % rank != 0 || pair.ranks / rank != p.experts) return {};
  return {pair.rows == p.rows && pair.columns == p.columns,
          !p.stacks.empty() && !p.matrix && pair.rows == p.columns && pair.columns == p.rows};
}

class Chooser {
 public:
  Chooser(const BaseTensors& base, const LoraConfig& config, const std::string& module,
          const std::vector<std::string>& names, const std::vector<FactorPair>& pairs)
      : base_(base), config_(config), module_(module), names_(names), pairs_(pairs) {
    for (const std::string& name : names) parameters_.push_back(*parameter_of(base, module, name));
  }

  std::vector<AdaptedTensor> choose() {
    refuse_settings();
    if (names_.size() != pairs_.size() || names_.size() > kMostParameters)
      throw refusal(Code::kUnaccounted,
                    "the module does not have a pair of factors for each targeted parameter")
          .expected(cat("a pair for each of ", listed(names_)))
          .found(counted(std::ssize(pairs_), "pair"));
    std::vector<std::size_t> order(names_.size()), found;  // the parameter of each pair
    std::iota(order.begin(), order.end(), 0u);
    int ways = 0;
    do {
      bool all = true;
      for (std::size_t i = 0; i < order.size() && all; i++) all = fit_of(i, order[i]).any();
      if (all) ways++, found = order;
    } while (std::ranges::next_permutation(order).found);
    if (ways == 0) refuse_shapes();
    if (ways > 1)
      throw refusal(Code::kAmbiguousLayout, "the shapes do not say which parameter a pair of factors is for")
          .found(listed(names_))
          .help("merge it where it was trained (merge_and_unload), and save the model");
    std::vector<AdaptedTensor> out;
    for (std::size_t i = 0; i < found.size(); i++) add(i, found[i], out);
    return out;
  }

 private:
  Error refusal(Code code, std::string message) const {
    return Error(code, std::move(message)).tensor(module_);
  }

  // Settings that PEFT has for modules alone.
  void refuse_settings() const {
    const std::pair<bool, const char*> settings[] = {{config_.biases, "lora_bias"},
                                                     {config_.weights_turned, "fan_in_fan_out"},
                                                     {config_.magnitudes, "use_dora"},
                                                     {config_.drops, "lora_dropout"}};
    for (const auto& [set, key] : settings)
      if (set)
        throw refusal(Code::kBadConfig,
                      cat("'", key, "' is not for parameters: PEFT loads no factors of them beside it"))
            .expected(cat("no ", key, " with target_parameters"))
            .help("merge it where it was trained (merge_and_unload), and save the model");
  }

  // By which the patterns of the config find the parameter.
  std::string name_of(std::size_t parameter) const { return cat(module_, ".", names_[parameter]); }

  Fit fit_of(std::size_t pair, std::size_t parameter) const {
    return fit(pairs_[pair], parameters_[parameter], config_.rank_of(name_of(parameter)));
  }

  [[noreturn]] void refuse_shapes() const {
    std::vector<std::string> lines;
    for (std::size_t i = 0; i < names_.size(); i++)
      lines.push_back(cat(escaped(names_[i]), ": ", parameters_[i].experts, " of [", parameters_[i].rows,
                          ", ", parameters_[i].columns, "]"));
    for (const FactorPair& p : pairs_)
      lines.push_back(
          cat("a pair of ", counted(p.ranks, "rank"), " of all experts: [", p.rows, ", ", p.columns, "]"));
    throw refusal(Code::kSourceShape, "the factors do not fit the parameters of the module").each_note(lines);
  }

  void add(std::size_t pair, std::size_t parameter, std::vector<AdaptedTensor>& out) const {
    const FactorPair& f = pairs_[pair];
    const Parameter& p = parameters_[parameter];
    const Fit how = fit_of(pair, parameter);
    if (how.plain && how.turned)
      throw refusal(Code::kAmbiguousLayout,
                    "the shapes do not say which dimension of the parameter is the output")
          .found(cat(escaped(names_[parameter]), " of [", p.rows, ", ", p.columns, "]"))
          .help("merge it where it was trained (merge_and_unload), and save the model");
    AdaptedFactors a{.a = f.a,
                     .b = f.b,
                     .scale = config_.scale_of(name_of(parameter)),
                     .rank = config_.rank_of(name_of(parameter)),
                     .experts = p.experts,
                     .turned = how.turned,
                     .rounded = true};
    auto put = [&](i64 t) { out.push_back({.tensor = t, .from = t, .factors = {a}}); };
    if (!p.stacks.empty()) {
      a.stack = true;
      for (i64 t : p.stacks) {
        put(t);
        const std::span<const i64> dims = base_.store().dims(t);
        a.first_row += dims[dims.size() - 2];
      }
      return;
    }
    for (a.expert = 0; a.expert < p.experts; a.expert++) {
      a.first_row = 0;
      for (i64 t : p.parts[static_cast<std::size_t>(a.expert)]) {
        put(t);
        a.first_row += base_.store().dims(t)[0];
      }
    }
  }

  const BaseTensors& base_;
  const LoraConfig& config_;
  const std::string& module_;
  const std::vector<std::string>& names_;
  const std::vector<FactorPair>& pairs_;
  std::vector<Parameter> parameters_;
};

}  // namespace

BaseTensors::BaseTensors(const Store& store, const BaseFacts& facts) : store_(store), memory_(facts.names) {
  for (i64 t = 0; t < store.tensor_count(); t++) numbers_.emplace(store.name(t), t);
}

// A folder may have the names in memory: those that some versions of transformers wrote.
i64 BaseTensors::find(std::string_view name) const {
  auto at = numbers_.find(name);
  if (at == numbers_.end() && memory_) at = numbers_.find(memory_->on_disk(name));
  return at == numbers_.end() ? -1 : at->second;
}

std::string BaseTensors::on_disk(std::string_view name) const {
  return memory_ ? memory_->on_disk(name) : std::string(name);
}

std::vector<std::string> BaseTensors::parts(std::string_view name) const {
  return memory_ ? memory_->parts(name) : std::vector<std::string>();
}

bool BaseTensors::rearranged(std::string_view name) const { return memory_ && memory_->rearranged(name); }

std::vector<std::string_view> BaseTensors::names() const {
  std::vector<std::string_view> out;
  for (i64 t = 0; t < store_.tensor_count(); t++) out.push_back(store_.name(t));
  return out;
}

std::vector<std::string> targeted_parameters(const BaseTensors& base, const LoraConfig& config,
                                             std::string_view module) {
  std::vector<std::string> out;
  for (const std::string& end : config.parameters) {
    std::string name = end.substr(end.rfind('.') + 1);
    if (std::ranges::find(out, name) == out.end() && is_targeted(config, cat(module, ".", name)) &&
        parameter_of(base, module, name))
      out.push_back(std::move(name));
  }
  return out;
}

std::vector<AdaptedTensor> pair_parameters(const BaseTensors& base, const LoraConfig& config,
                                           const std::string& module,
                                           const std::vector<std::string>& parameters,
                                           const std::vector<FactorPair>& pairs) {
  return Chooser(base, config, module, parameters, pairs).choose();
}

}  // namespace mckpt::impl
