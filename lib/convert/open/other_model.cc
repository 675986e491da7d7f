#include "convert/open/other_model.h"

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "core/base/int.h"
#include "hf/model.h"
#include "io/dcp/run/args.h"
#include "io/dcp/run/sizes.h"
#include "io/store/store.h"
#include "mappings/config.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {
namespace {

bool is_true(const PickleValue& args, std::string_view name) {
  const PickleValue* value = arg_of(args, name);
  return value && value->is(PickleValue::Kind::kBool) && value->as_bool();
}

// Whether the tensors have as many experts as the config: then the args are wrong, which is another fault
// (MC1312). A router has a row for each.
bool stores_experts(const Store& store, i64 experts) {
  for (i64 t = 0; t < store.tensor_count(); t++)
    if (store.name(t).ends_with(".mlp.router.weight"))
      if (std::span<const i64> dims = store.dims(t); dims.size() >= 2)
        return dims[dims.size() - 2] == experts;
  return false;
}

// One number of a model. `decides`: two values are two models; other numbers only show how much the models
// differ.
struct Number {
  const char* name;  // in the args
  i64 in_config;     // 0: the model has no such number
  bool decides;
};

std::vector<Number> numbers_of(const Store& store, const ModelConfig& m, const PickleValue& args) {
  bool latent = m.mla.kv_lora > 0;  // its projections are not fused, and their shapes say the heads
  // Without grouped queries the number of groups means nothing.
  bool grouped = !latent && is_true(args, "group_query_attention");
  return {{"num_attention_heads", m.text.heads, !latent},
          {"num_query_groups", grouped ? m.text.kv_groups : 0, true},
          {"hidden_size", m.text.hidden, true},
          {"num_experts", stores_experts(store, m.moe.experts) ? 0 : m.moe.experts, true},
          // The args of a run whose layers follow a pattern count other layers than the config.
          {"num_layers", has_pattern(args) ? 0 : std::ssize(m.text.layers), false},
          {"ffn_hidden_size", m.text.ffn, false},
          {"moe_ffn_hidden_size", m.moe.ffn, false}};
}

[[noreturn]] void refuse(const Store& store, const HfModel& model, const std::vector<std::string>& expected,
                         const std::vector<std::string>& found) {
  throw Error(Code::kContradiction, "the assets are of another model than the checkpoint")
      .file(cat(model.path, "/config.json"))
      .expected(cat(listed(expected, 3), ", as in the args of ", escaped(store.root(), 4096)))
      .found(listed(found, 3))
      .help("give the folder of the checkpoint's own model with `assets`");
}

}  // namespace

void refuse_other_model(const Store& store, const HfModel& model) {
  std::shared_ptr<const PickleValue> args;
  try {
    args = args_of(store);
  } catch (const Error&) {
  }
  if (!args) return;
  bool other = false;
  std::vector<std::string> expected, found;
  for (const Number& n : numbers_of(store, model.map->model(), *args)) {
    const PickleValue* stored = arg_of(*args, n.name);
    if (n.in_config == 0 || !stored || !stored->is_int() || stored->as_int() == n.in_config) continue;
    other |= n.decides;
    if (expected.size() == 3) continue;
    expected.push_back(cat(n.name, " ", stored->as_int()));
    found.push_back(cat(n.name, " ", n.in_config));
  }
  if (other) refuse(store, model, expected, found);
}

}  // namespace mckpt::impl
