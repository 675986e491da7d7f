// One table of the types; what is unsaid of each follows from it.
#include "convert/facts/rope_args.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <string>
#include <string_view>

#include "core/base/int.h"
#include "core/base/notes.h"
#include "core/base/text.h"
#include "hf/config/run_entries.h"
#include "mappings/config.h"

namespace mckpt::impl {

namespace {

// The arguments that a type has; kUnsaid: Megatron has none for it.
enum class Stretching : u8 { kNone, kYarn, kLatentYarn, kLlama3, kLinear, kUnsaid };

Stretching stretching_of(const ModelConfig& m, const RopeEntries& rope) {
  if (rope.type.empty() || std::ranges::find(kPlainRopes, rope.type) != std::end(kPlainRopes))
    return Stretching::kNone;
  if (m.mla.kv_lora > 0) return rope.type == "yarn" ? Stretching::kLatentYarn : Stretching::kUnsaid;
  if (!rope.some_layers.empty()) return Stretching::kUnsaid;
  if (rope.type == "yarn") return Stretching::kYarn;
  if (rope.type == "llama3") return Stretching::kLlama3;
  if (rope.type != "linear") return Stretching::kUnsaid;
  return rope.factor == 1 ? Stretching::kNone : rope.factor > 0 ? Stretching::kLinear : Stretching::kUnsaid;
}

}  // namespace

bool is_rotary(const ModelConfig& m) { return m.mamba.heads == 0; }

std::string_view position_embedding_type(const ModelConfig& model, const RopeEntries& rope) {
  if (!is_rotary(model)) return "none";
  if (!rope.sections.empty()) return "mrope";
  return stretching_of(model, rope) == Stretching::kYarn ? "yarn" : "rope";
}

// Megatron has fields of their own for latent attention, which is stretched by default.
std::vector<ArgField> stretching_fields(const ModelConfig& model, const RopeEntries& rope) {
  const Stretching how = stretching_of(model, rope);
  std::vector<ArgField> out;
  auto add = [&](std::string_view name, double value) {
    if (value != 0) out.push_back({name, value});
  };
  auto add_size = [&](std::string_view name, i64 value) {
    if (value > 0) out.push_back({name, value});
  };
  if (model.mla.kv_lora > 0)
    out.push_back({"rope_type", std::string(how == Stretching::kLatentYarn ? "yarn" : "rope")});
  switch (how) {
    case Stretching::kNone:
    case Stretching::kUnsaid:
      break;
    case Stretching::kLatentYarn:
      add("rotary_scaling_factor", rope.factor);
      add_size("original_max_position_embeddings", rope.original_positions);
      add("beta_fast", rope.beta_fast);
      add("beta_slow", rope.beta_slow);
      add("mscale", rope.mscale);
      add("mscale_all_dim", rope.mscale_all_dim);
      break;
    case Stretching::kYarn:
      add("yarn_rotary_scaling_factor", rope.factor);
      add_size("yarn_original_max_position_embeddings", rope.original_positions);
      add("yarn_beta_fast", rope.beta_fast);
      add("yarn_beta_slow", rope.beta_slow);
      break;
    case Stretching::kLlama3:
      out.push_back({"use_rope_scaling", true});
      add("rope_scaling_factor", rope.factor);
      break;
    case Stretching::kLinear:
      out.push_back({"rotary_seq_len_interpolation_factor", number_value(rope.factor)});
  }
  return out;
}

ArgField::Value number_value(double value) {
  if (std::abs(value) < 9e18 && value == std::trunc(value)) return static_cast<i64>(value);
  return value;
}

bool states_interpolation(const ModelConfig& model, const RunEntries& entries) {
  return is_rotary(model) && stretching_of(model, entries.rope) == Stretching::kLinear;
}

std::string unread_share(const ModelConfig& model, const RopeEntries& rope) {
  if (rope.unread_percent == 0 || rope.unread_percent == 1) return "";
  return cat("config.json says that the part ", rope.unread_percent,
             " of each head is rotated, which transformers' class of ", escaped(model.model_type),
             " does not compute with");
}

void note_unsaid_rope(const ModelConfig& model, const RunEntries& entries, Notes& notes) {
  const RopeEntries& rope = entries.rope;
  if (!is_rotary(model)) return;
  if (const std::string share = unread_share(model, rope); !share.empty())
    notes.note(cat(share, ": the args say that heads are rotated whole"));
  if (!rope.of_kinds.empty())
    notes.note(cat("the args do not say how the rotary embeddings of kinds of layers are stretched (",
                   listed(rope.of_kinds), "): Megatron has arguments for all layers together"));
  const Stretching how = stretching_of(model, rope);
  if (how == Stretching::kUnsaid && !rope.some_layers.empty())
    notes.note(cat("the args do not say how the rotary embeddings of ", rope.some_layers, " are stretched (",
                   escaped(rope.type), "): Megatron has arguments for all layers together"));
  else if (how == Stretching::kUnsaid && rope.type == "linear" && rope.factor <= 0)
    notes.warn(
        "the args do not say how the rotary embeddings are stretched: config.json has the type linear without a factor");
  else if (how == Stretching::kUnsaid)
    notes.warn(cat(
        "the args do not say how the rotary embeddings are stretched: Megatron has no argument for the type ",
        escaped(rope.type), model.mla.kv_lora > 0 ? " of latent attention" : "",
        ", and computes without it"));
  if (how != Stretching::kLlama3) return;
  auto check = [&](std::string_view key, double said, double megatron) {
    if (said > 0 && said != megatron)
      notes.warn(cat("the args do not say ", key, " ", said, " of rotary embeddings: Megatron computes with ",
                     megatron));
  };
  check("low_freq_factor", rope.low_freq_factor, 1);
  check("high_freq_factor", rope.high_freq_factor, 4);
  check("original_max_position_embeddings", static_cast<double>(rope.original_positions), 8192);
}

}  // namespace mckpt::impl
