// One read() for each struct of the interface: a setting has the name of its field; fields of nested structs
// have no prefix (`tp`, not grid.tp). `threads` is that of plan().
#include "api/settings.h"

#include <algorithm>
#include <charconv>

#include "api/kinds.h"
#include "core/base/error.h"

namespace mckpt::impl {
namespace {

[[noreturn]] void refuse(std::string_view name, const char* expected, std::string_view found) {
  throw Error(Code::kUsage, cat("the value of `", name, "` is not allowed"))
      .expected(expected)
      .found(escaped(found));
}

template <typename T>
void parse_number(std::string_view name, std::string_view text, T& to) {
  auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), to);
  if (fault != std::errc{} || end != text.data() + text.size()) refuse(name, "a whole number", text);
}

void read(Settings& s, ModelOptions& to) {
  mckpt::impl::read(s, to.files);
  s.take("expert_layout", to.expert_layout);
  s.take("map_file", to.map_file);
}

void read(Settings& s, mckpt::Grid& to) {
  s.take("tp", to.tp), s.take("cp", to.cp), s.take("ep", to.ep), s.take("etp", to.etp), s.take("pp", to.pp);
  s.take("dp", to.dp), s.take("hsdp", to.hsdp);
  s.take("hsdp_outer", to.hsdp_outer);
}

void read(Settings& s, mckpt::Fsdp& to) {
  s.take("engine", to.engine);
  s.take("strategy", to.strategy);
  s.take("transformer_units", to.transformer_units);
  s.take("mamba_units", to.mamba_units);
  s.take("hybrid_stack_units", to.hybrid_stack_units);
  s.take("units_for", to.units_for);
  s.take("bucket_size", to.bucket_size);
  s.take("freeze", to.freeze);
}

void read(Settings& s, mckpt::Values& to) {
  s.take("vocab_size", to.vocab_size);
  s.take("params_dtype", to.params_dtype);
  s.take("dtype", to.dtype);
  s.take("dtype_rule", to.dtype_rule);
}

// The fields that every conversion has.
template <typename What>
void read_ends(Settings& s, What& to) {
  s.take("source", to.source);
  s.take("target", to.target);
  if (to.source.empty() || to.target.empty())
    throw Error(Code::kUsage, "a conversion needs the settings source and target");
}

void read(Settings& s, ToFsdp& to) {
  read_ends(s, to);
  s.take("assets", to.assets), s.take("accept", to.accept);
  read(s, to.model), read(s, to.grid), read(s, to.fsdp), read(s, to.values);
  s.take("spelling", to.spelling);
  s.take("hybrid_pattern", to.hybrid_pattern);
  s.take("iteration", to.iteration);
  s.take("model_dict", to.model_dict);
  s.take("source_tp", to.source_tp), s.take("source_etp", to.source_etp);
  s.take("weights_only", to.weights_only), s.take("any_model", to.any_model);
  s.take("fsdp_module", to.fsdp_module), s.take("rank_states", to.rank_states);
  s.take("source_ep", to.source_ep), s.take("source_hsdp", to.source_hsdp);
}

void read(Settings& s, ToMcore& to) {
  read_ends(s, to);
  mckpt::impl::read(s, to.opening);
  read(s, to.grid), read(s, to.values);
  s.take("vpp", to.vpp);
  s.take("first_stage_layers", to.first_stage_layers), s.take("last_stage_layers", to.last_stage_layers);
  s.take("layers", to.layers), s.take("spelling", to.spelling);
  s.take("weights_only", to.weights_only), s.take("iteration", to.iteration);
  s.take("model_dict", to.model_dict);
}

void read(Settings& s, ToHf& to) {
  read_ends(s, to);
  mckpt::impl::read(s, to.opening);
  s.take("dtype", to.dtype);
  s.take("dtype_rule", to.dtype_rule);
  s.take("max_shard_size", to.max_shard_size);
  s.take("quantize", to.quantize);
  s.take("model_dict", to.model_dict);
}

void read(Settings& s, Reshard& to) {
  read_ends(s, to);
  mckpt::impl::read(s, to.opening);
  read(s, to.grid), read(s, to.fsdp);
  s.take("vpp", to.vpp);
  s.take("first_stage_layers", to.first_stage_layers), s.take("last_stage_layers", to.last_stage_layers);
  s.take("vocab_size", to.vocab_size);
  s.take("weights_only", to.weights_only), s.take("any_model", to.any_model),
      s.take("keep_names", to.keep_names), s.take("fsdp_module", to.fsdp_module);
  s.take("rank_states", to.rank_states);
  s.take("source_ep", to.source_ep), s.take("source_hsdp", to.source_hsdp);
  s.take("iteration", to.iteration);
}

void read(Settings& s, ToRanks& to) {
  read_ends(s, to);
  mckpt::impl::read(s, to.opening);
  read(s, to.grid), read(s, to.values);
  s.take("vpp", to.vpp);
  s.take("first_stage_layers", to.first_stage_layers), s.take("last_stage_layers", to.last_stage_layers);
  s.take("spelling", to.spelling);
  s.take("iteration", to.iteration);
  s.take("model_dict", to.model_dict);
}

void read(Settings& s, Relayer& to) {
  read_ends(s, to);
  s.take("pattern", to.pattern);
  s.take("keys", to.keys), s.take("layers", to.layers), s.take("norms", to.norms);
  s.take("without_mixers", to.without_mixers), s.take("weights_only", to.weights_only);
  s.take("accept", to.accept);
  mckpt::impl::read(s, to.files);
}

void read(Settings& s, ToSafetensors& to) {
  read_ends(s, to);
  mckpt::impl::read(s, to.files);
  s.take("assets", to.assets), s.take("accept", to.accept);
  s.take("dtype", to.dtype), s.take("dtype_rule", to.dtype_rule);
  s.take("model_dict", to.model_dict);
}

void read(Settings& s, ToDcp& to) {
  read_ends(s, to);
  mckpt::impl::read(s, to.files);
  s.take("dp", to.dp), s.take("section", to.section), s.take("assets", to.assets);
  s.take("weights_only", to.weights_only), s.take("dtype", to.dtype), s.take("accept", to.accept);
  s.take("model_dict", to.model_dict);
}

void read(Settings& s, Dequantize& to) {
  read_ends(s, to);
  mckpt::impl::read(s, to.files);
  s.take("dtype", to.dtype), s.take("max_shard_size", to.max_shard_size), s.take("accept", to.accept);
}

void read(Settings& s, Quantize& to) {
  read_ends(s, to);
  mckpt::impl::read(s, to.files);
  s.take("scheme", to.scheme), s.take("like", to.like), s.take("max_shard_size", to.max_shard_size);
}

void read(Settings& s, ToHdf5& to) {
  read_ends(s, to);
  mckpt::impl::read(s, to.files);
  s.take("single_file", to.single_file);
  s.take("assets", to.assets), s.take("accept", to.accept);
}

void read(Settings& s, FromHdf5& to) {
  read_ends(s, to);
  mckpt::impl::read(s, to.files);
}

void read(Settings& s, PtToSafetensors& to) {
  read_ends(s, to);
  mckpt::impl::read(s, to.files);
  s.take("include", to.include), s.take("exclude", to.exclude);
  s.take("tensors_only", to.tensors_only);
}

void read(Settings& s, ToPt& to) {
  read_ends(s, to);
  mckpt::impl::read(s, to.files);
  s.take("include", to.include), s.take("exclude", to.exclude);
}

template <typename What>
What complete(Settings& s, What what) {
  read(s, what);
  s.refuse_rest();
  return what;
}

}  // namespace

Settings::Settings(const char* const* list) {
  for (; list && *list; list++) {
    std::string_view text = *list;
    std::size_t equals = text.find('=');
    if (equals == text.npos)
      throw Error(Code::kUsage, "a setting has no value").expected("name=value").found(escaped(text));
    list_.push_back({std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))});
  }
}

const Settings::Setting* Settings::one(std::string_view name) {
  known_.emplace(name);
  const Setting* found = nullptr;
  for (const Setting& s : list_) {
    if (s.name != name) continue;
    if (found)
      throw Error(Code::kUsage, cat("`", name, "` has one value, and several are given"))
          .found(cat(escaped(found->value), " and ", escaped(s.value)));
    found = &s;
  }
  return found;
}

bool Settings::has(std::string_view name) {
  known_.emplace(name);
  return std::ranges::any_of(list_, [&](const Setting& s) { return s.name == name; });
}

void Settings::take(std::string_view name, std::string& to) {
  if (const Setting* s = one(name)) to = s->value;
}

void Settings::take(std::string_view name, bool& to) {
  const Setting* s = one(name);
  if (!s) return;
  if (s->value != "0" && s->value != "1") refuse(name, "0 or 1", s->value);
  to = s->value == "1";
}

void Settings::take(std::string_view name, int& to) {
  if (const Setting* s = one(name)) parse_number(name, s->value, to);
}

void Settings::take(std::string_view name, std::int64_t& to) {
  if (const Setting* s = one(name)) parse_number(name, s->value, to);
}

void Settings::take(std::string_view name, std::vector<std::string>& to) {
  known_.emplace(name);
  for (const Setting& s : list_)
    if (s.name == name) to.push_back(s.value);
}

// The glob may contain '=' itself, so the last one counts.
void Settings::take(std::string_view name, std::vector<std::pair<std::string, std::string>>& to) {
  std::vector<std::string> texts;
  take(name, texts);
  for (const std::string& text : texts) {
    std::size_t equals = text.rfind('=');
    if (equals == text.npos) refuse(name, "a glob, '=' and a type", text);
    to.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
}

void Settings::refuse_rest() const {
  for (const Setting& s : list_) {
    if (known_.contains(s.name)) continue;
    Error e(Code::kUsage, cat("there is no setting `", escaped(s.name), "` here"));
    if (std::string_view near = nearest(s.name, known_); !near.empty())
      e.help(cat("did you mean `", near, "`?"));
    else
      e.note(cat("the settings are ", listed(known_, known_.size())));
    throw e;
  }
}

void read(Settings& s, mckpt::OpenOptions& to) {
  s.take("follow_links", to.follow_links), s.take("model_files", to.model_files), s.take("base", to.base);
}

void read(Settings& s, SourceOptions& to) {
  s.take("assets", to.assets);
  s.take("source_tp", to.source_tp), s.take("source_etp", to.source_etp);
  s.take("accept", to.accept);
  read(s, to.model);
}

void read(Settings& s, mckpt::RunOptions& to) {
  s.take("threads", to.threads);
  s.take("max_memory", to.max_memory);
  s.take("sync", to.sync);
  s.take("overwrite", to.overwrite);
  s.take("resume", to.resume);
  s.take("allow_overflow", to.allow_overflow);
  s.take("card", to.card), s.take("command", to.command);
}

void read(Settings& s, mckpt::CardFiles& to) { s.take("report", to.report), s.take("command", to.command); }

void read(Settings& s, mckpt::VerifyOptions& to) {
  read(s, to.files);
  read(s, to.cards);
  s.take("assets", to.assets), s.take("model_dict", to.model_dict);
  s.take("card", to.card);
  s.take("threads", to.threads);
}

void read(Settings& s, mckpt::CompareOptions& to) {
  read(s, to.opening);
  s.take("path_tp", to.path_tp), s.take("path_etp", to.path_etp);
  s.take("params_dtype", to.params_dtype);
  s.take("dtype", to.dtype), s.take("dtype_rule", to.dtype_rule);
  s.take("weights_only", to.weights_only);
  read(s, to.cards);
  s.take("threads", to.threads);
  s.take("model_dict", to.model_dict);
}

void read(Settings& s, mckpt::DiffOptions& to) {
  read(s, to.opening);
  s.take("within", to.within);
  s.take("model_dict", to.model_dict);
  s.take("names", to.names);
  s.take("regex", to.regex), s.take("html", to.html);
  s.take("path_tp", to.path_tp), s.take("path_etp", to.path_etp);
  s.take("threads", to.threads);
}

void read(Settings& s, mckpt::PlotOptions& to) {
  s.take("names", to.names), s.take("regex", to.regex), s.take("stats", to.stats);
  s.take("threads", to.threads);
  read(s, to.files);
}

void read(Settings& s, TensorsToLoad& to) {
  s.take("device", to.how.device), s.take("threads", to.how.threads);
  s.take("names", to.names), s.take("dtype", to.dtype);
  read(s, to.files);
}

void read(Settings& s, mckpt::RankToLoad& to) {
  s.take("device", to.how.device), s.take("threads", to.how.threads);
  s.take("rank", to.rank);
  read(s, to.model), read(s, to.grid), read(s, to.values);
  s.take("spelling", to.spelling);
  s.take("hybrid_pattern", to.hybrid_pattern);
}

mckpt::Conversion plan_kind(std::string_view word, Settings& s) {
  const std::string_view kind = kind_of(word);
  std::string target;
  s.take("target", target);
  check_target(word, target);
  int threads = 1;
  s.take("threads", threads);
  if (kind == "to-fsdp") return plan(complete(s, ToFsdp{}), threads);
  if (kind == "to-mcore") return plan(complete(s, ToMcore{}), threads);
  if (kind == "to-hf") return plan(complete(s, ToHf{}), threads);
  if (kind == "reshard") return plan(complete(s, Reshard{}), threads);
  if (kind == "to-safetensors") return plan(complete(s, ToSafetensors{}), threads);
  if (kind == "to-dcp") return plan(complete(s, ToDcp{}), threads);
  if (kind == "dequantize") return plan(complete(s, Dequantize{}), threads);
  if (kind == "quantize") return plan(complete(s, Quantize{}), threads);
  if (kind == "to-hdf5") return plan(complete(s, ToHdf5{}), threads);
  if (kind == "from-hdf5") return plan(complete(s, FromHdf5{}));
  if (kind == "pt-to-safetensors") return plan(complete(s, PtToSafetensors{}), threads);
  if (kind == "safetensors-to-pt") return plan(complete(s, ToPt{}), threads);
  if (kind == "to-ranks") return plan(complete(s, ToRanks{}), threads);
  return plan(complete(s, Relayer{.way = std::string(kind)}));
}

}  // namespace mckpt::impl
