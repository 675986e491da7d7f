// Reads the entries that are known (config_entries.h), and refuses what is not computed.
#include "hf/adapter/lora/lora_config.h"

#include <algorithm>
#include <cmath>
#include <regex>

#include "core/base/error.h"
#include "hf/adapter/lora/config_entries.h"
#include "hf/adapter/lora/vocabulary.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/store/open/adapter_base.h"

namespace mckpt::impl {
namespace {

constexpr i64 kMostConfigBytes = 16 << 20;
constexpr double kMostRank = 1 << 20;
// Limits of expressions: trying them takes time that grows as a power of the name's length.
constexpr std::size_t kLongestPattern = 1000, kLongestName = 256;
constexpr int kMostRepeats = 3;

// Starts of training that leave the base as it is, and those that take the factors out of it: PEFT takes them
// out again when it loads the adapter, by a decomposition of each weight whose last bits depend on the
// library of linear algebra.
constexpr std::string_view kStarts[] = {"gaussian", "eva", "orthogonal"};
constexpr std::string_view kChangedBases[] = {"pissa", "olora", "corda", "loftq", "lora_ga"};

// The entries beside the rank and alpha that decide which weights are changed, and by how much.
constexpr std::string_view kDeciding[] = {"use_rslora",
                                          "use_dora",
                                          "fan_in_fan_out",
                                          "lora_bias",
                                          "rank_pattern",
                                          "alpha_pattern",
                                          "target_modules",
                                          "exclude_modules",
                                          "layers_to_transform",
                                          "layers_pattern",
                                          "modules_to_save",
                                          "target_parameters",
                                          "trainable_token_indices",
                                          "ensure_weight_tying"};

constexpr const char* kMergeThere = "merge it where it was trained (merge_and_unload), and save the model";

template <std::size_t N>
bool has(const std::string_view (&table)[N], std::string_view text) {
  return std::ranges::find(table, text) != std::end(table);
}

[[noreturn]] void refuse(std::string_view key, const JsonValue& value) {
  throw Error(Code::kBadConfig, cat("'", escaped(key), "' asks for an adapter that is not computed"))
      .found(value.is(JsonType::kString) ? cat("'", escaped(value.string(key)), "'") : value.summary())
      .help(kMergeThere);
}

const JsonValue* entry(const JsonValue& config, std::string_view key) {
  const JsonValue* v = config.find(key);
  return v && !v->is(JsonType::kNull) ? v : nullptr;
}

bool flag(const JsonValue& config, std::string_view key) {
  const JsonValue* v = entry(config, key);
  return v && v->boolean(key);
}

// Any number: a scale of zero leaves the base as it is.
double number(const JsonValue& v, std::string_view key) {
  double n = v.real(key);
  if (!(std::abs(n) <= kMostRank))
    throw Error(Code::kBadConfig, cat("'", escaped(key), "' is not a possible number"))
        .expected("a number")
        .found(v.summary());
  return n;
}

double positive(const JsonValue& v, std::string_view key, bool whole) {
  double n = v.real(key);
  if (!(n > 0) || n > kMostRank || (whole && n != std::floor(n)))
    throw Error(Code::kBadConfig, cat("'", escaped(key), "' is not a possible number"))
        .expected(whole ? "a whole number from 1 on" : "a positive number")
        .found(v.summary());
  return n;
}

// A value as a text that is equal for equal ones; "" for what is as if it were missing. The first of several
// patterns that matches decides, so objects keep their order.
std::string plain_text(const JsonValue* v) {
  if (v == nullptr || v->is(JsonType::kNull)) return "";
  if (v->is(JsonType::kBool)) return v->boolean("") ? "true" : "";
  if (v->is(JsonType::kNumber)) return cat(v->real(""));
  if (v->is(JsonType::kString)) return cat("'", v->string(""), "'");
  std::string out;
  auto add = [&](std::string_view part) { out += cat(part.size(), ":", part); };
  if (v->is(JsonType::kObject)) {
    for (const JsonMember& m : v->object("")) add(m.name), add(plain_text(&m.value));
    return out;
  }
  std::vector<std::string> parts;
  for (const JsonValue& item : v->array("")) parts.push_back(plain_text(&item));
  const bool names =
      std::ranges::all_of(v->array(""), [](const JsonValue& i) { return i.is(JsonType::kString); });
  if (names) std::ranges::sort(parts);  // rows of tokens have an order
  for (const std::string& part : parts) add(part);
  return out;
}

double needed(const JsonValue& config, std::string_view key, bool whole) {
  if (const JsonValue* v = entry(config, key)) return whole ? positive(*v, key, true) : number(*v, key);
  throw Error(Code::kBadConfig,
              cat("'", key, "' is missing, and without it the scale of the adapter is not known"));
}

const LoraConfig::Exception* exception_of(const std::vector<LoraConfig::Exception>& list,
                                          std::string_view module) {
  auto at =
      std::ranges::find_if(list, [&](const LoraConfig::Exception& e) { return e.pattern->matches(module); });
  return at == list.end() ? nullptr : &*at;
}

std::vector<LoraConfig::Exception> exceptions(const JsonValue& config, std::string_view key, bool whole) {
  std::vector<LoraConfig::Exception> out;
  const JsonValue* v = entry(config, key);
  if (!v) return out;
  for (const JsonMember& m : v->object(key))
    out.push_back({std::make_shared<const ModulePattern>(m.name),
                   whole ? positive(m.value, cat(key, "' of '", m.name), true)
                         : number(m.value, cat(key, "' of '", m.name))});
  return out;
}

void check_kind(const JsonValue& config) {
  const JsonValue* kind = entry(config, "peft_type");
  if (kind && kind->is(JsonType::kString) && kind->string("peft_type") == "LORA") return;
  throw Error(Code::kBadConfig, "the adapter is of a kind that is not computed")
      .expected("peft_type LORA")
      .found(!kind                         ? "no peft_type"
             : kind->is(JsonType::kString) ? cat("'", escaped(kind->string("peft_type")), "'")
                                           : kind->summary())
      .help(kMergeThere);
}

void check_start(const JsonValue& config) {
  const JsonValue* v = entry(config, "init_lora_weights");
  if (!v || v->is(JsonType::kBool)) return;
  const std::string start = v->is(JsonType::kString) ? v->string("init_lora_weights") : "";
  if (std::ranges::any_of(kChangedBases, [&](std::string_view name) { return start.starts_with(name); }))
    throw Error(Code::kBadConfig,
                cat("training began by taking the factors out of the base (", escaped(start),
                    "), so the adapter is one of the base without them, which is not stored"))
        .expected("an adapter of the base as it is")
        .found(cat("init_lora_weights '", escaped(start), "'"))
        .help(
            "save_pretrained(DIR, path_initial_model_for_weight_conversion=START) of PEFT makes an adapter of the base as it is; or merge it where it was trained (merge_and_unload), and save the model");
  if (!v->is(JsonType::kString) || !has(kStarts, v->string("init_lora_weights")))
    refuse("init_lora_weights", *v);
}

void check_bias(const JsonValue& config) {
  constexpr std::string_view kBiases[] = {"none", "all", "lora_only"};
  const JsonValue* v = entry(config, "bias");
  if (v && !has(kBiases, v->string("bias"))) refuse("bias", *v);
}

// Entries that exclude each other: PEFT makes no adapter of such a config.
void check_together(const JsonValue& config) {
  auto text = [&](const char* key) {
    const JsonValue* v = entry(config, key);
    return v && v->is(JsonType::kString);
  };
  auto refuse_both = [](const char* one, const char* other, const char* wanted) {
    throw Error(Code::kBadConfig,
                cat("'", one, "' and '", other, "' exclude each other: PEFT loads no adapter that has both"))
        .expected(wanted)
        .help(kMergeThere);
  };
  for (const char* key : {"layers_to_transform", "layers_pattern"})
    if (text("target_modules") && entry(config, key))
      refuse_both("target_modules", key, "a list of modules, or no choice of layers beside an expression");
  if (const JsonValue* v = entry(config, "layers_pattern");
      v && !says_nothing("layers_pattern", *v) && !entry(config, "layers_to_transform"))
    throw Error(Code::kBadConfig,
                "'layers_pattern' is there without 'layers_to_transform': PEFT loads no such adapter")
        .expected("the numbers of layers in layers_to_transform")
        .found("none")
        .help(kMergeThere);
  if (flag(config, "lora_bias") && flag(config, "use_dora"))
    refuse_both("lora_bias", "use_dora", "one of the two");
  if (flag(config, "lora_bias") && text("init_lora_weights"))
    refuse_both("lora_bias", "init_lora_weights", "init_lora_weights true or false");
}

JsonValue config_object(std::string_view text) {
  JsonValue config = parse_config(text);
  if (!config.is(JsonType::kObject))
    throw Error(Code::kBadConfig, "the config of the adapter is not an object").found(config.summary());
  return config;
}

// Refuses settings that may be right and are not computed here.
void refuse_not_computed(const JsonValue& config) {
  check_kind(config);
  for (const JsonMember& m : config.object("adapter_config.json"))
    if (!is_known_entry(m.name) && !says_nothing(m.name, m.value)) refuse(m.name, m.value);
  check_start(config);
  for (const char* key : {"rank_pattern", "alpha_pattern"})
    if (const JsonValue* patterns = entry(config, key); patterns && patterns->is(JsonType::kObject))
      for (const JsonMember& m : patterns->object(key)) ModulePattern pattern(m.name);
}

std::vector<i64> token_rows(const JsonValue& list) {
  std::vector<i64> rows;
  for (const JsonValue& v : list.array("trainable_token_indices"))
    rows.push_back(v.integer("trainable_token_indices"));
  return rows;
}

// A list is for the embedding of tokens.
std::vector<LoraConfig::Tokens> read_tokens(const JsonValue& config) {
  const JsonValue* v = entry(config, "trainable_token_indices");
  if (!v || says_nothing("trainable_token_indices", *v)) return {};
  if (v->is(JsonType::kArray)) return {{"", token_rows(*v)}};
  std::vector<LoraConfig::Tokens> out;
  for (const JsonMember& m : v->object("trainable_token_indices"))
    out.push_back({m.name, token_rows(m.value)});
  return out;
}

// Letters, digits, '_', and '.', which stands for any character.
bool is_plain(std::string_view pattern) {
  return std::ranges::all_of(pattern, [](char c) {
    return c == '_' || c == '.' || (is_ascii({&c, 1}) && std::isalnum(c));
  });
}

// Whether Python and ECMAScript read the expression alike: they differ in parentheses with a question mark
// and in escapes of letters. Few repeats are common, and none of a group.
bool is_common(std::string_view pattern) {
  int repeats = 0;
  for (std::size_t i = 0; i < pattern.size(); i++) {
    const char c = pattern[i], next = i + 1 < pattern.size() ? pattern[i + 1] : '\0';
    const bool repeat = c == '*' || c == '+' || c == '{' || c == '?';
    if (repeat && (++repeats > kMostRepeats || i == 0 || pattern[i - 1] == '(' || pattern[i - 1] == ')'))
      return false;
    if (c == '\\' && !std::ispunct(static_cast<unsigned char>(next)) && next != 'd') return false;
    if (c == '\\') i++;
  }
  return pattern.size() <= kLongestPattern;
}

}  // namespace

struct ModulePattern::Expression {
  std::regex regex;
};

// Takes the modules that Python's re.match("(.*\.)?(TEXT)$", module) takes.
ModulePattern::ModulePattern(std::string text, Of of) : text_(std::move(text)), of_(of) {
  if (is_plain(text_)) return;
  try {
    if (is_common(text_))
      expression_.reset(new Expression{std::regex(cat(of == kEnd ? "(.*\\.)?(" : "(", text_, ")"))});
  } catch (const std::regex_error&) {
    // The error below says it.
  }
  if (!expression_)
    throw Error(Code::kBadConfig, "a pattern of modules is not a regular expression that is read here")
        .found(cat("'", escaped(text_), "'"))
        .help(kMergeThere);
}

ModulePattern::~ModulePattern() = default;

bool ModulePattern::matches(std::string_view module) const {
  if (expression_) {
    if (module.size() > kLongestName)
      throw Error(Code::kBadConfig, "the name of a module is too long for the patterns of the config")
          .expected(cat("at most ", kLongestName, " bytes"))
          .found(module.size());
    return std::regex_match(module.begin(), module.end(), expression_->regex);
  }
  if (module.size() < text_.size()) return false;
  const std::size_t before = module.size() - text_.size();
  if (before > 0 && (of_ == kWhole || module[before - 1] != '.')) return false;
  return std::ranges::equal(text_, module.substr(before), [](char p, char c) { return p == '.' || p == c; });
}

i64 LoraConfig::rank_of(std::string_view module) const {
  const Exception* e = exception_of(ranks, module);
  return e ? static_cast<i64>(e->value) : rank;
}

double LoraConfig::scale_of(std::string_view module) const {
  const Exception* e = exception_of(alphas, module);
  const double own_alpha = e ? e->value : alpha, own_rank = static_cast<double>(rank_of(module));
  return own_alpha / (by_root ? std::sqrt(own_rank) : own_rank);
}

bool LoraConfig::Tokens::is_for(std::string_view name) const {
  return module.empty() ? is_embedding_weight(cat(name, ".weight"))
                        : name == module || name.ends_with(cat(".", module));
}

bool LoraConfig::Tokens::is_of_embedding() const {
  return module.empty() || is_embedding_weight(cat(module, ".weight"));
}

std::string why_not_computed(std::string_view text) {
  try {
    refuse_not_computed(config_object(text));
  } catch (const Error& e) {
    return e.found().empty() ? e.message() : cat(e.message(), " (", e.found(), ")");
  }
  return "";
}

LoraConfig parse_lora_config(std::string_view text) {
  const JsonValue config = config_object(text);
  refuse_not_computed(config);
  check_bias(config);
  check_together(config);
  LoraConfig out;
  out.text = text;
  out.rank = static_cast<i64>(needed(config, "r", true));
  out.alpha = needed(config, "lora_alpha", false);
  out.by_root = flag(config, "use_rslora");
  out.weights_turned = flag(config, "fan_in_fan_out");
  out.magnitudes = flag(config, "use_dora");
  out.biases = flag(config, "lora_bias");
  if (const JsonValue* dropped = entry(config, "lora_dropout"))
    out.drops = dropped->real("lora_dropout") != 0;
  out.ranks = exceptions(config, "rank_pattern", true);
  out.alphas = exceptions(config, "alpha_pattern", false);
  if (const JsonValue* names = entry(config, "target_parameters"))
    for (const JsonValue& name : names->array("target_parameters"))
      out.parameters.push_back(name.string("target_parameters"));
  out.rules = read_targets(config);
  out.tokens = read_tokens(config);
  out.keeps_tie = flag(config, "ensure_weight_tying");
  if (const JsonValue* mapping = entry(config, "auto_mapping"); mapping && mapping->is(JsonType::kObject))
    if (const JsonValue* name = entry(*mapping, "base_model_class"); name && name->is(JsonType::kString))
      out.base_class = name->string("base_model_class");
  if (const JsonValue* base = entry(config, "base_model_name_or_path"))
    out.base = base->string("base_model_name_or_path");
  return out;
}

std::string unlike_entry(std::string_view one, std::string_view other, bool whole) {
  const JsonValue a = config_object(one), b = config_object(other);
  for (std::string_view key : kDeciding)
    if ((whole || b.find(key)) && plain_text(a.find(key)) != plain_text(b.find(key))) return std::string(key);
  return "";
}

LoraConfig read_lora_config(const Folder& folder) {
  return with_file(cat(folder.path(), "/", kAdapterConfig), [&] {
    return parse_lora_config(json_text(folder.open_file(kAdapterConfig), kMostConfigBytes));
  });
}

}  // namespace mckpt::impl
