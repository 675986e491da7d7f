// Takes the names of the adapter's tensors apart, collects what each module has, and gives every module its
// tensors of the base.
#include "hf/adapter/pairing.h"

#include <algorithm>
#include <map>
#include <string>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "hf/adapter/lora_config.h"
#include "hf/adapter/parameters.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

constexpr std::string_view kPrefix = "base_model.model.", kWrapped = ".base_layer";
constexpr const char* kOtherBase =
    "check that the base is the model that was trained, with the names of its own folder";

// The last part of the names of modules that read tokens: what models tie to their output layer.
constexpr std::string_view kEmbeddings[] = {"embed_tokens",   "wte",    "word_embeddings", "embed_in",
                                            "tok_embeddings", "shared", "embeddings"};
constexpr std::string_view kHeads[] = {"lm_head.weight", "embed_out.weight", "output.weight", "score.weight",
                                       "proj_out.weight"};

// What a module has in the adapter: numbers of tensors, -1 if there is none. `pairs`: by how many wrappers
// are around the pair of factors.
struct Module {
  struct Pair {
    i64 a = -1, b = -1;
  };
  std::map<i64, Pair> pairs;
  Pair embedding;
  i64 bias = -1, magnitude = -1;
};

// The end of a name that says what a tensor is for.
struct Ending {
  std::string_view text;
  enum class Of : u8 { kA, kB, kBias, kEmbeddingA, kEmbeddingB, kMagnitude } of;
};
constexpr Ending kEndings[] = {{".lora_A.weight", Ending::Of::kA},
                               {".lora_B.weight", Ending::Of::kB},
                               {".lora_B.bias", Ending::Of::kBias},
                               {".lora_embedding_A", Ending::Of::kEmbeddingA},
                               {".lora_embedding_B", Ending::Of::kEmbeddingB},
                               {".lora_magnitude_vector", Ending::Of::kMagnitude},
                               {".lora_magnitude_vector.weight", Ending::Of::kMagnitude}};

bool is_float(DType dtype) { return dtype == DType::kF32 || dtype == DType::kBF16 || dtype == DType::kF16; }

i64& place_in(Module& m, Ending::Of of, i64 depth) {
  switch (of) {
    case Ending::Of::kA:
      return m.pairs[depth].a;
    case Ending::Of::kB:
      return m.pairs[depth].b;
    case Ending::Of::kBias:
      return m.bias;
    case Ending::Of::kEmbeddingA:
      return m.embedding.a;
    case Ending::Of::kEmbeddingB:
      return m.embedding.b;
    case Ending::Of::kMagnitude:
      break;
  }
  return m.magnitude;
}

class Pairing {
 public:
  Pairing(const Store& base, const Store& adapter, const LoraConfig& config)
      : base_(base), adapter_(adapter), config_(config) {}

  std::vector<AdaptedTensor> run() {
    for (i64 t = 0; t < adapter_.tensor_count(); t++) collect(t);
    for (const auto& entry : modules_) with_tensor(entry.first, [&] { pair(entry.first, entry.second); });
    std::vector<AdaptedTensor> out;
    for (auto& [tensor, adapted] : adapted_) out.push_back(adapted);
    for (const AdaptedTensor& a : out) check_types(a);
    for (const AdaptedTensor& a : out) refuse_tied(a.tensor);
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

  // Puts the tensor in its module, or in its place if it replaces one of the base.
  void collect(i64 t) {
    std::string_view name = adapter_.name(t);
    if (!is_float(adapter_.dtype(t)))
      throw Error(Code::kUnsupportedTensor,
                  "the type of the adapter's tensor is not one that is computed with")
          .tensor(name)
          .expected("float32, bfloat16 or float16")
          .found(dtype_name(adapter_.dtype(t)));
    if (!name.starts_with(kPrefix))
      throw Error(Code::kUnaccounted, "the tensor is none of an adapter of PEFT")
          .tensor(name)
          .expected(cat("a name that begins with ", kPrefix));
    name.remove_prefix(kPrefix.size());
    for (const Ending& e : kEndings)
      if (name.ends_with(e.text)) return collect(t, name.substr(0, name.size() - e.text.size()), e.of);
    replace(t, name);
  }

  void collect(i64 t, std::string_view name, Ending::Of of) {
    i64 depth = 0;
    for (; name.ends_with(kWrapped); depth++) name.remove_suffix(kWrapped.size());
    Module& m = modules_[std::string(name)];
    if (depth > 0 && of != Ending::Of::kA && of != Ending::Of::kB) refuse_unused(t);
    i64& place = place_in(m, of, depth);
    if (place >= 0) refuse_unused(t);
    place = t;
  }

  // "x.weight", and "x.base_layer.weight" of a module that has factors too.
  void replace(i64 t, std::string_view name) {
    std::string own(name);
    if (std::size_t at = own.rfind(kWrapped); at != own.npos && own.find('.', at + 1) == at + kWrapped.size())
      own.erase(at, kWrapped.size());
    i64 b = base_.find(own);
    if (b < 0) refuse_unused(t);
    if (!std::ranges::equal(dims(t), base_.store().dims(b)))
      throw Error(Code::kSourceShape, "a tensor of the adapter replaces one of another shape")
          .tensor(own)
          .expected(dims_to_string(base_.store().dims(b)))
          .found(shape_text(t));
    AdaptedTensor& a = change(b);
    if (a.replaced >= 0) refuse_unused(t);
    a.replaced = t;
  }

  [[noreturn]] void refuse_unused(i64 t) const {
    std::string_view name = adapter_.name(t), own = name.substr(std::min(kPrefix.size(), name.size()));
    Error e(Code::kUnaccounted, "a tensor of the adapter belongs to no tensor of its base");
    e.tensor(name).help(kOtherBase);
    if (std::string_view near = nearest(own, base_.names()); !near.empty())
      e.note(cat("the nearest name in the base is ", escaped(near)));
    throw e;
  }

  // The entry of a tensor of the base.
  AdaptedTensor& change(i64 tensor) {
    AdaptedTensor& a = adapted_[tensor];
    a.tensor = tensor;
    return a;
  }

  // Adds factors to what the tensor has; only a replacement may be there.
  void add_factors(const AdaptedTensor& factors) {
    AdaptedTensor& a = change(factors.tensor);
    if (a.a >= 0 || a.added >= 0)
      throw Error(Code::kUnaccounted, "two pairs of factors change one tensor of the base")
          .tensor(base_.store().name(factors.tensor));
    const i64 replaced = a.replaced;
    a = factors;
    a.replaced = replaced;
  }

  void pair(const std::string& name, const Module& m) {
    const bool embedding = m.embedding.a >= 0 || m.embedding.b >= 0;
    if (embedding) pair_embedding(name, m);
    for (const auto& [depth, p] : m.pairs) check_whole(p);
    std::vector<std::string> parameters = targeted_parameters(base_, config_, name);
    if (!parameters.empty() && !m.pairs.empty()) {
      if (embedding) throw two_kinds();
      pair_parameters_of(name, m, parameters);
    } else if (!m.pairs.empty()) {
      if (embedding) throw two_kinds();
      pair_linear(name, m);
    } else if (!embedding) {
      throw Error(Code::kUnaccounted, "a module of the adapter has no factors")
          .expected("lora_A and lora_B")
          .found(m.bias >= 0 ? "lora_B.bias" : "lora_magnitude_vector");
    }
  }

  static Error two_kinds() {
    return Error(Code::kUnaccounted, "the module has factors of an embedding and of a matrix");
  }

  void check_whole(const Module::Pair& p) const {
    if (p.a >= 0 && p.b >= 0) return;
    throw Error(Code::kUnaccounted, "one of the two factors of a module is missing")
        .expected("lora_A and lora_B")
        .found(escaped(adapter_.name(std::max(p.a, p.b))))
        .help("the adapter was not saved whole: save it again");
  }

  // The pair with its sizes. Throws for factors that are no matrices, or do not have one rank.
  FactorPair sized(const Module::Pair& p) const {
    if (dims(p.a).size() != 2 || dims(p.b).size() != 2)
      throw Error(Code::kUnsupportedTensor,
                  "the factors are no matrices: layers of other kinds are not merged")
          .found(cat(shape_text(p.a), " and ", shape_text(p.b)))
          .help("merge it where it was trained (merge_and_unload), and save the model");
    if (dims(p.a)[0] != dims(p.b)[1])
      throw Error(Code::kSourceShape, "the two factors have different ranks")
          .expected("A [r, in] and B [out, r]")
          .found(cat(shape_text(p.a), " and ", shape_text(p.b)));
    return {p.a, p.b, dims(p.b)[0], dims(p.a)[1], dims(p.a)[0]};
  }

  void check_rank(const std::string& name, const FactorPair& f) const {
    if (f.ranks == config_.rank_of(name)) return;
    throw Error(Code::kSourceShape, "the factors do not have the rank that the config gives")
        .expected(cat("rank ", config_.rank_of(name)))
        .found(cat("rank ", f.ranks));
  }

  // The weight of a module: a matrix [rows, columns].
  i64 weight(const std::string& name, i64 rows, i64 columns, i64 factor) {
    i64 t = base_.find(cat(name, ".weight"));
    if (t < 0) refuse_unused(factor);
    const i64 wanted[] = {rows, columns};
    if (!std::ranges::equal(base_.store().dims(t), wanted))
      throw Error(Code::kSourceShape, "the factors do not fit the weight of the base")
          .expected(cat(dims_to_string(wanted), config_.weights_turned ? ", as fan_in_fan_out says" : ""))
          .found(dims_to_string(base_.store().dims(t)))
          .help(kOtherBase);
    return t;
  }

  void pair_linear(const std::string& name, const Module& m) {
    if (m.pairs.size() != 1 || m.pairs.begin()->first != 0) refuse_unused(m.pairs.rbegin()->second.a);
    const FactorPair f = sized(m.pairs.begin()->second);
    check_rank(name, f);
    const bool turned = config_.weights_turned;
    AdaptedTensor out{.a = f.a,
                      .b = f.b,
                      .magnitude = m.magnitude,
                      .scale = config_.scale_of(name),
                      .rank = f.ranks,
                      .turned = turned};
    out.tensor = turned ? weight(name, f.columns, f.rows, f.a) : weight(name, f.rows, f.columns, f.a);
    check_magnitude(m, f, turned);
    add_factors(out);
    add_bias(name, m, f);
  }

  void check_magnitude(const Module& m, const FactorPair& f, bool turned) const {
    if (config_.magnitudes != (m.magnitude >= 0))
      throw Error(Code::kUnaccounted, "the config and the tensors do not agree about magnitudes of rows")
          .expected(config_.magnitudes ? "lora_magnitude_vector, as use_dora says" : "none, as use_dora says")
          .found(config_.magnitudes ? "none" : "lora_magnitude_vector");
    if (m.magnitude < 0) return;
    const i64 wanted[] = {f.rows};
    if (!std::ranges::equal(dims(m.magnitude), wanted))
      throw Error(Code::kSourceShape, "the magnitudes are not one for each row of the weight")
          .expected(dims_to_string(wanted))
          .found(shape_text(m.magnitude));
    if (turned)
      throw Error(Code::kUnsupportedTensor,
                  "magnitudes of weights that are stored [in, out] are not computed")
          .help("merge it where it was trained (merge_and_unload), and save the model");
  }

  void add_bias(const std::string& name, const Module& m, const FactorPair& f) {
    if (config_.biases != (m.bias >= 0))
      throw Error(Code::kUnaccounted, "the config and the tensors do not agree about a bias of the factors")
          .expected(config_.biases ? "lora_B.bias, as lora_bias says" : "none, as lora_bias says")
          .found(config_.biases ? "none" : "lora_B.bias");
    if (m.bias < 0) return;
    i64 t = base_.find(cat(name, ".bias"));
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
    a.added = m.bias, a.scale = config_.scale_of(name);
  }

  void refuse_extras(const Module& m, const char* what) const {
    if (m.bias >= 0 || m.magnitude >= 0)
      throw Error(Code::kUnsupportedTensor, cat("a bias or magnitudes of ", what, " are not computed"))
          .help("merge it where it was trained (merge_and_unload), and save the model");
  }

  void pair_embedding(const std::string& name, const Module& m) {
    refuse_extras(m, "an embedding");
    check_whole(m.embedding);
    const FactorPair f = sized(m.embedding);
    check_rank(name, f);
    add_factors({.tensor = weight(name, f.columns, f.rows, f.a),
                 .a = f.a,
                 .b = f.b,
                 .scale = config_.scale_of(name),
                 .rank = f.ranks,
                 .turned = true,
                 .rounded = true});
  }

  void pair_parameters_of(const std::string& name, const Module& m,
                          const std::vector<std::string>& parameters) {
    refuse_extras(m, "a parameter");
    std::vector<FactorPair> pairs;
    for (const auto& [depth, p] : m.pairs) pairs.push_back(sized(p));
    for (const AdaptedTensor& a : pair_parameters(base_, config_, name, parameters, pairs)) add_factors(a);
  }

  void check_types(const AdaptedTensor& a) const {
    if (is_float(base_.store().dtype(a.tensor))) return;
    throw Error(Code::kUnsupportedTensor, "the adapter changes a tensor of a type that is not computed with")
        .tensor(base_.store().name(a.tensor))
        .expected("float32, bfloat16 or float16")
        .found(dtype_name(base_.store().dtype(a.tensor)));
  }

  // A model without an output layer of its own uses the embedding for it. PEFT's adapter leaves the output
  // layer as it was, which one tensor for both cannot.
  void refuse_tied(i64 tensor) const {
    std::string_view name = base_.store().name(tensor);
    if (!name.ends_with(".weight")) return;
    name.remove_suffix(std::string_view(".weight").size());
    if (std::ranges::find(kEmbeddings, name.substr(name.rfind('.') + 1)) == std::end(kEmbeddings)) return;
    for (std::string_view other : base_.names())
      for (std::string_view head : kHeads)
        if (other == head || other.ends_with(cat(".", head))) return;
    throw Error(Code::kUnsupportedTensor,
                "the adapter changes the embedding of a model whose output layer is the embedding")
        .tensor(base_.store().name(tensor))
        .help("merge it where it was trained (merge_and_unload), and look at what the model computes");
  }

  const BaseTensors base_;
  const Store& adapter_;
  const LoraConfig& config_;
  std::map<std::string, Module> modules_;
  std::map<i64, AdaptedTensor> adapted_;  // by the tensor of the base
};

}  // namespace

std::vector<AdaptedTensor> pair_adapter(const Store& base, const Store& adapter, const LoraConfig& config) {
  return Pairing(base, adapter, config).run();
}

}  // namespace mckpt::impl
