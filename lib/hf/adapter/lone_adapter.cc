// Every module is looked at, whatever is wrong with others. An adapter that mckpt does not compute may be
// right.
#include "hf/adapter/lone_adapter.h"

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "core/base/text.h"
#include "hf/adapter/lora/factors.h"
#include "hf/adapter/lora/lora_config.h"
#include "hf/adapter/lora/modules.h"
#include "io/json/json.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

bool has_factors(const Store& adapter) {
  for (i64 t = 0; t < adapter.tensor_count(); t++)
    if (adapter.name(t).find(".lora_") != std::string_view::npos) return true;
  return false;
}

// "" where the config has none.
std::string kind_of(const std::string& config_text) {
  const JsonValue config = parse_config(config_text);
  const JsonValue* kind = config.find("peft_type");
  return kind && kind->is(JsonType::kString) ? kind->string("peft_type") : "";
}

bool is_interruption(const Error& e) { return e.code() == Code::kInterrupted; }

// Errors of modules, one kind together.
class Problems {
 public:
  void add(Error e, const std::string& module) {
    e.default_tensor(module);
    auto [at, first] = places_.emplace(std::pair(e.code(), e.message()), errors_.size());
    if (first)
      errors_.emplace_back(std::move(e), 0);
    else
      errors_[at->second].second++;
  }

  std::vector<Error> take() {
    std::vector<Error> out;
    for (auto& [e, others] : errors_) {
      if (others > 0) e.note(cat("so ", others == 1 ? "is " : "are ", counted(others, "other module")));
      out.push_back(std::move(e));
    }
    return out;
  }

 private:
  std::map<std::pair<Code, std::string>, std::size_t> places_;
  std::vector<std::pair<Error, i64>> errors_;  // and how many more there are
};

void check_modules(const Store& adapter, const LoraConfig& config, LoneAdapter& out) {
  const AdapterNames names = adapter_names(adapter);
  const Factors factors(adapter, config, names);
  Problems problems;
  if (names.unused >= 0)
    problems.add(Error(Code::kUnaccounted, "a tensor of the adapter belongs to no factors"),
                 std::string(adapter.name(names.unused)));
  for (const auto& [tensor, own] : names.whole)
    if (const std::string help = help_of_named_factor(own); !help.empty())
      problems.add(Error(Code::kUnaccounted, "PEFT saves no factor under such a name, and loads none from it")
                       .expected("a name that ends in .lora_A.weight, .lora_B.weight or the like")
                       .help(help),
                   std::string(adapter.name(tensor)));
  for (const auto& [module, parts] : names.modules) try {
      factors.check(module, parts);
    } catch (const Error& e) {
      if (is_interruption(e)) throw;
      if (e.code() == Code::kUnsupportedTensor)
        out.not_checked = e.message();
      else
        problems.add(e, module);
    }
  out.problems = problems.take();
  try {
    factors.require_tokens(true);
  } catch (const Error& e) {
    out.problems.push_back(e);
  }
}

}  // namespace

LoneAdapter check_lone_adapter(const Store& adapter, const std::string& config_text) {
  LoneAdapter out;
  try {
    out.not_checked = why_not_computed(config_text);
    // Another kind of adapter has no factors of LoRA, and LoRA has no config of another kind.
    if (const std::string kind = kind_of(config_text); has_factors(adapter) && kind != "LORA") {
      out.problems.push_back(
          Error(Code::kContradiction, "the adapter has factors of LoRA, and its config is of another kind")
              .expected("peft_type LORA")
              .found(kind.empty() ? "none" : cat("'", escaped(kind), "'"))
              .help(
                  "adapter_config.json and adapter_model.safetensors belong to two adapters: take both from one save"));
      out.not_checked.clear();
    } else if (out.not_checked.empty()) {
      check_modules(adapter, parse_lora_config(config_text), out);
    }
  } catch (const Error& e) {
    if (is_interruption(e)) throw;
    if (e.code() == Code::kUnsupportedTensor)
      out.not_checked = e.message();
    else
      out.problems.push_back(e);
  }
  return out;
}

}  // namespace mckpt::impl
