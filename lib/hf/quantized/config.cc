// Reads the entry, which each library writes in its own words; and takes it out of the text of a config, or
// puts one in, so that every other byte stays as it was.
#include "hf/quantized/config.h"

#include <algorithm>

#include "core/base/error.h"
#include "hf/quantized/presets.h"
#include "io/file/folder.h"
#include "io/json/json.h"
#include "io/json/json_file.h"
#include "io/json/json_text.h"

namespace mckpt::impl {
namespace {

constexpr const char *kEntries[] = {"quantization_config", "compression_config"}, *kLanguage = "text_config";
constexpr const char* kCacheAlgorithm = "kv_cache_quant_algo";  // of ModelOpt
constexpr i64 kMostConfigBytes = 16 << 20;
constexpr i64 kLargestBlock = i64{1} << 20;

const JsonValue* member(const JsonValue& object, std::string_view key, JsonType type) {
  const JsonValue* v = object.find(key);
  return v && v->is(type) ? v : nullptr;
}

std::string text_of(const JsonValue& object, std::string_view key) {
  const JsonValue* v = member(object, key, JsonType::kString);
  return v ? v->string(key) : "";
}

// compressed-tensors takes names of types and strategies in upper case, too.
std::string lower_text_of(const JsonValue& object, std::string_view key) {
  std::string text = text_of(object, key);
  for (char& c : text)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return text;
}

// The number of a text with up to seven digits and blanks around them; -1 for any other text.
i64 number_in_text(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == text.npos) return -1;
  text = text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
  constexpr std::size_t kMostDigits = 7;
  if (text.size() > kMostDigits) return -1;
  i64 n = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return -1;
    n = 10 * n + (c - '0');
  }
  return n;
}

// A positive number; 0 if it is absent, null or -1, as libraries write "none". `texts`: a number in a string
// is one.
i64 size_of(const JsonValue& object, std::string_view key, bool texts = false) {
  const JsonValue* v = object.find(key);
  if (!v || v->is(JsonType::kNull)) return 0;
  const i64 in_text = texts && v->is(JsonType::kString) ? number_in_text(v->string(key)) : -1;
  if (!v->is_integer() && in_text < 0)
    throw Error(Code::kBadConfig, cat("'", key, "' of the quantisation is not a whole number"))
        .found(escaped(v->summary()));
  const i64 n = in_text >= 0 ? in_text : v->integer(key);
  if (n < -1 || n == 0 || n > kLargestBlock)
    throw Error(Code::kBadConfig, cat("'", key, "' of the quantisation is not a possible size")).found(n);
  return std::max<i64>(n, 0);
}

// [rows, columns]; leaves the numbers as they are if the entry is absent or null.
void read_block(const JsonValue& object, std::string_view key, i64& rows, i64& columns) {
  const JsonValue* v = object.find(key);
  if (!v || v->is(JsonType::kNull)) return;
  static const JsonValue::Array kNone;
  const JsonValue::Array& sizes = v->is(JsonType::kArray) ? v->array(key) : kNone;
  bool sound = sizes.size() == 2 && std::ranges::all_of(sizes, [&](const JsonValue& s) {
                 return s.is_integer() && s.integer(key) > 0 && s.integer(key) <= kLargestBlock;
               });
  std::string found = v->is(JsonType::kArray) ? "[" : v->summary();
  for (const JsonValue& s : sizes) found += cat(found.size() > 1 ? ", " : "", s.summary());
  if (!sound)
    throw Error(Code::kBadConfig, cat("'", key, "' is not the size of a block"))
        .expected("two positive numbers, rows and columns")
        .found(escaped(v->is(JsonType::kArray) ? found + "]" : found));
  rows = sizes[0].integer(key), columns = sizes[1].integer(key);
}

// Blocks of compressed-tensors, which releases up to 0.10.2 write as "128x64".
void read_block_structure(const JsonValue& weights, i64& rows, i64& columns) {
  constexpr const char* kKey = "block_structure";
  const std::string text = text_of(weights, kKey);
  const std::size_t cross = text.find('x');
  const i64 r = cross == text.npos ? -1 : number_in_text(text.substr(0, cross)),
            c = cross == text.npos ? -1 : number_in_text(text.substr(cross + 1));
  if (std::min(r, c) < 1 || std::max(r, c) > kLargestBlock) return read_block(weights, kKey, rows, columns);
  rows = r, columns = c;
}

// Whether the order of activations says which columns share a scale, and not only how codes were chosen.
bool is_ordered_by_group(const JsonValue& weights) {
  const JsonValue* truth = member(weights, "actorder", JsonType::kBool);
  const std::string named = lower_text_of(weights, "actorder");
  return named == "group" || named == "dynamic" || (truth && truth->boolean("actorder"));
}

// Scales of one kind have settings of their own; without a strategy the others say which it is.
std::string impossible_in(const QuantConfig::Weights& w, const JsonValue& weights) {
  const bool groups = w.strategy == "group" || w.strategy == "tensor_group";
  if (w.group_size > 0 && !groups && !w.strategy.empty())
    return cat("strategy ", escaped(w.strategy), " with a group_size of ", w.group_size);
  if (w.block_rows > 0 && w.strategy != "block")
    return cat("strategy ", w.strategy.empty() ? "null" : escaped(w.strategy), " with a block_structure");
  if (is_ordered_by_group(weights) && !groups && !w.strategy.empty())
    return cat("strategy ", escaped(w.strategy), " with actorder ",
               escaped(weights.find("actorder")->summary()));
  const JsonValue* dynamic = member(weights, "dynamic", JsonType::kBool);
  if (dynamic && dynamic->boolean("dynamic") && (w.strategy == "channel" || w.strategy == "block"))
    return cat("strategy ", w.strategy, " with dynamic true");
  return "";
}

// Notes the members that are none of the names: the library has refused them since 0.11.
template <typename Names>
void note_unknown(const JsonValue& settings, const Names& names, const std::string& where,
                  QuantConfig& config) {
  for (const JsonMember& m : settings.object(where))
    if (std::ranges::find(names, std::string_view(m.name)) == std::end(names))
      config.disputed.push_back(cat("compressed-tensors 0.11 to 0.20 loads no model with '", escaped(m.name),
                                    "' in ", where, "; older releases and mckpt do not read it"));
}

// Settings of a group, or of a cache, that some releases of the library refuse.
void note_disputed(const JsonValue& settings, const std::string& where, QuantConfig& config) {
  constexpr std::string_view kArguments[] = {
      "num_bits", "type",     "symmetric",   "group_size", "strategy", "block_structure",
      "dynamic",  "actorder", "scale_dtype", "zp_dtype",   "observer", "observer_kwargs"};
  constexpr std::string_view kGroup[] = {"targets", "weights", "input_activations", "output_activations",
                                         "format"};
  note_unknown(settings, kGroup, where, config);
  for (const char* part : {"weights", "input_activations", "output_activations"}) {
    const JsonValue* arguments = member(settings, part, JsonType::kObject);
    if (arguments) note_unknown(*arguments, kArguments, cat(part, " of ", where), config);
  }
  const JsonValue* weights = member(settings, "weights", JsonType::kObject);
  if (!weights || !is_ordered_by_group(*weights)) return;
  const std::string order = text_of(*weights, "actorder");
  config.disputed.push_back(cat("compressed-tensors 0.19 and 0.20 load no model with actorder ",
                                order.empty() ? "true" : escaped(order), " in ", where,
                                "; releases up to 0.18 do"));
}

// A list of modules, whose settings the name of the group says.
void read_preset(const std::string& name, QuantConfig& config) {
  const std::optional<std::vector<QuantConfig::Weights>> weights = preset_weights(name);
  if (!weights)
    throw Error(
        Code::kBadConfig,
        "'config_groups' has a list of modules under a name that compressed-tensors has no settings for")
        .expected("a preset of compressed-tensors 0.20, as W4A16 or FP8_DYNAMIC")
        .found(escaped(name))
        .help("put the settings of the weights in place of the list: \"weights\": {\"num_bits\": ...}");
  config.weights.insert(config.weights.end(), weights->begin(), weights->end());
}

void read_groups(const JsonValue& entry, QuantConfig& config) {
  const JsonValue* groups = member(entry, "config_groups", JsonType::kObject);
  if (!groups) return;
  const JsonValue* format = entry.find("format");
  if (format && format->is(JsonType::kNull)) config.impossible = "format null";
  for (const JsonMember& group : groups->object("config_groups")) {
    if (group.value.is(JsonType::kArray)) {
      read_preset(group.name, config);
      continue;
    }
    if (config.method == QuantMethod::kCompressedTensors && group.value.is(JsonType::kObject))
      note_disputed(group.value, escaped(group.name), config);
    const JsonValue* weights = member(group.value, "weights", JsonType::kObject);
    if (!weights) continue;
    QuantConfig::Weights w{size_of(*weights, "num_bits", true), size_of(*weights, "group_size"),
                           lower_text_of(*weights, "strategy")};
    read_block_structure(*weights, w.block_rows, w.block_columns);
    w.type = lower_text_of(*weights, "type"), w.format = text_of(group.value, "format");
    if (w.group_size == 0 && (w.strategy == "group" || w.strategy == "tensor_group"))
      throw Error(Code::kBadConfig,
                  cat("the strategy ", w.strategy, " of the quantisation has no group_size"))
          .expected("the number of values that share a scale")
          .found("none");
    if (const JsonValue* symmetric = member(*weights, "symmetric", JsonType::kBool))
      w.symmetric = symmetric->boolean("symmetric");
    w.ordered_by_group = is_ordered_by_group(*weights);
    if (config.impossible.empty()) config.impossible = impossible_in(w, *weights);
    config.weights.push_back(std::move(w));
  }
  config.of_weights = !config.weights.empty();
}

Error not_decoded(std::string_view how) {
  return Error(Code::kQuantized, cat("'quantization_config' says that the weights are quantised by ",
                                     escaped(how), ", which is not decoded"))
      .help("load the model in the library that wrote it and save it in bfloat16");
}

// hf_quant_config.json has the settings one level deeper, and no name of the method.
const JsonValue* quantization_of(const JsonValue& entry) {
  const JsonValue* inner = member(entry, "quantization", JsonType::kObject);
  return inner ? inner : &entry;
}

QuantMethod method_of(const std::string& name) {
  if (name == "fp8" || name == "finegrained_fp8") return QuantMethod::kFp8;
  if (name == "mxfp4") return QuantMethod::kMxfp4;
  if (name == "compressed-tensors") return QuantMethod::kCompressedTensors;
  if (name == "modelopt" || name == "modelopt_fp4" || name == "modelopt_mxfp8") return QuantMethod::kModelOpt;
  constexpr const char* kKnown = "fp8, mxfp4, compressed-tensors or modelopt";
  if (name.empty())
    throw Error(Code::kBadConfig, "'quantization_config' does not name its method")
        .expected(kKnown)
        .found("no quant_method");
  throw not_decoded(name).expected(kKnown).found(escaped(name));
}

// The work of ModelOpt, by the algorithm's name. AWQ divides columns by a factor that is kept beside the
// weights, or in the norm before them; only the former is refused, where its tensor is found. A low-rank part
// (SVD) is never read.
void check_algorithm(std::string_view name) {
  constexpr std::string_view kDecoded[] = {"FP8", "NVFP4", "MXFP4", "MIXED_PRECISION"};
  bool known =
      std::ranges::any_of(kDecoded, [&](std::string_view part) { return name.find(part) != name.npos; });
  if (name.empty() || (known && name.find("SVD") == name.npos && name.find("W4A8_AWQ") == name.npos)) return;
  throw not_decoded(name)
      .expected("a quant_algo with FP8, NVFP4, MXFP4 or MXFP8, or MIXED_PRECISION")
      .found(escaped(name));
}

// Weights of compressed-tensors that were rotated are other numbers than the model's.
void refuse_transforms(const JsonValue& how) {
  const JsonValue* transforms = member(how, "transform_config", JsonType::kObject);
  const JsonValue* groups = transforms ? member(*transforms, "config_groups", JsonType::kObject) : nullptr;
  if (groups && !groups->object("config_groups").empty())
    throw not_decoded("compressed-tensors with transform_config (rotated weights)")
        .expected("weights as the model has them")
        .found(counted(std::ssize(groups->object("config_groups")), "transform"));
}

// The type that the model computes in, at the top or of its language model.
std::optional<DType> dtype_of(const JsonValue& config) {
  const JsonValue* language = member(config, kLanguage, JsonType::kObject);
  for (const JsonValue* object : {&config, language})
    for (const char* key : {"dtype", "torch_dtype"}) {
      std::string name = object ? text_of(*object, key) : "";
      if (name.starts_with("torch.")) name.erase(0, 6);
      for (DType type : {DType::kBF16, DType::kF16, DType::kF32})
        if (name == dtype_name(type)) return type;
    }
  return std::nullopt;
}

}  // namespace

const JsonValue* quantization_entry(const JsonValue& config) {
  const JsonValue* language = member(config, kLanguage, JsonType::kObject);
  for (const JsonValue* object : {&config, language})
    for (const char* key : kEntries)
      if (const JsonValue* entry = object ? object->find(key) : nullptr; entry && !entry->is(JsonType::kNull))
        return entry;
  return nullptr;
}

QuantConfig quant_config_of(const JsonValue& entry) {
  if (!entry.is(JsonType::kObject))
    throw Error(Code::kBadConfig, "quantization_config is not an object").found(entry.summary());
  QuantConfig config;
  const JsonValue& how = *quantization_of(entry);
  std::string algorithm = text_of(how, "quant_algo"), format = text_of(how, "format");
  std::string name = text_of(how, "quant_method");
  // Older files of compressed-tensors have the format alone.
  if (name.empty() && member(how, "config_groups", JsonType::kObject)) name = "compressed-tensors";
  const bool caches = !text_of(how, kCacheAlgorithm).empty();
  if (name.empty() && (!algorithm.empty() || caches)) name = "modelopt";
  config.method = method_of(name);
  if (config.method == QuantMethod::kModelOpt) config.of_weights = !algorithm.empty() || !caches;
  config.fmt = text_of(how, "fmt"), config.algorithm = algorithm, config.format = format;
  config.version = text_of(how, "version");
  config.power_scales = text_of(how, "scale_fmt") == "ue8m0";
  if (config.method == QuantMethod::kModelOpt) check_algorithm(algorithm);
  if (config.method == QuantMethod::kCompressedTensors) refuse_transforms(how);
  config.text =
      cat(name, algorithm.empty() ? "" : " ", escaped(algorithm), format.empty() ? "" : " ", escaped(format));
  read_block(how, "weight_block_size", config.block_rows, config.block_columns);
  read_groups(how, config);
  if (config.method == QuantMethod::kModelOpt)
    if (i64 size = size_of(how, "group_size"); size > 0) config.weights.push_back({0, size, "group"});
  return config;
}

QuantDeclaration read_quant_declaration(const Folder& folder) {
  QuantDeclaration declared;
  for (const char* name : {"config.json", "hf_quant_config.json"}) {
    if (!folder.has_file(name)) continue;
    with_file(cat(folder.path(), "/", name), [&] {
      JsonValue json = parse_config(json_text(folder.open_file(name), kMostConfigBytes));
      const JsonValue* entry = name == std::string_view("config.json") ? quantization_entry(json) : &json;
      if (entry != &json) declared.dtype = dtype_of(json).value_or(declared.dtype);
      // ModelOpt writes its file also where only a cache is quantised, or nothing.
      if (entry == &json && text_of(*quantization_of(json), "quant_algo").empty() &&
          (declared.config || text_of(*quantization_of(json), kCacheAlgorithm).empty()))
        return;
      if (!entry) {
        if (!declared.config) declared.silent = name;
        return;
      }
      QuantConfig config = quant_config_of(*entry);
      if (!declared.config) {
        declared.config = std::move(config);
        declared.config->file = name, declared.silent = "";
      } else if (config.method != declared.config->method) {
        throw Error(Code::kBadConfig, "two files declare other quantisations of the same weights")
            .expected(cat(declared.config->text, ", as ", declared.config->file, " says"))
            .found(config.text);
      }
    });
  }
  return declared;
}

std::string without_quantization(std::string_view config_json) {
  std::string text(config_json);
  for (const char* key : kEntries) {
    text = without_member(text, 0, key);
    std::size_t language = 0;
    if (JsonText(text).find(0, kLanguage, &language).end > 0 && text[language] == '{')
      text = without_member(text, language, key);
  }
  return text;
}

std::string quantization_text(std::string_view config_json) {
  JsonText scanner(config_json);
  std::vector<std::size_t> objects = {0};  // where they begin
  std::size_t value = 0;
  if (scanner.find(0, kLanguage, &value).end > 0 && config_json[value] == '{') objects.push_back(value);
  for (std::size_t object : objects)
    for (const char* key : kEntries)
      if (JsonExtent at = scanner.find(object, key, &value); at.end > 0)
        return std::string(config_json.substr(value, at.end - value));
  return "";
}

std::string with_quantization(std::string_view config_json, std::string_view entry) {
  std::string text = without_quantization(config_json);
  std::size_t close = text.find_last_of('}');
  std::size_t last = text.find_last_not_of(" \t\r\n", close - 1);
  std::string_view comma = text[last] == '{' ? "" : ",";
  return cat(text.substr(0, last + 1), comma, "\n  \"quantization_config\": ", entry, "\n",
             text.substr(close));
}

}  // namespace mckpt::impl
