// One pass over the tensors: each that can be codes looks for its scales by name, and what is found is
// checked. The rest are scales without codes and, in a model that is quantised, codes without scales.
#include "hf/quantized/recognise.h"

#include <algorithm>

#include "core/base/error.h"
#include "core/base/name_hash.h"
#include "core/items/dtype.h"
#include "hf/quantized/claims.h"
#include "hf/quantized/parts.h"
#include "io/store/names/scale_names.h"
#include "io/store/store.h"

namespace mckpt::impl {
namespace {

bool is_fp8(DType t) { return t == DType::kF8E4M3 || t == DType::kF8E5M2; }

class Recogniser {
 public:
  Recogniser(const Store& store, const QuantDeclaration& declared)
      : store_(store), config_(declared.config), silent_(declared.silent), parts_(store, declared.config) {
    used_.resize(static_cast<std::size_t>(store.tensor_count()));
    out_.power_scales = config_ && config_->power_scales;
  }

  QuantizedModel run() {
    for (i64 t = 0; t < store_.tensor_count(); t++) {
      try {
        if (std::optional<QuantizedTensor> found = codes_at(t)) {
          set_group_tensor(parts_, *found);
          if (std::string fault = layout_fault(found->layout); !fault.empty())
            throw Error(Code::kQuantMisfit, fault);
          take(*std::move(found));
        }
      } catch (const Error& e) {
        add(e, t);
        faulty_.insert(values_name(store_.name(t)));
      }
    }
    judge_rest();
    judge_method();
    judge_silence();
    for (i64 t = 0; t < store_.tensor_count(); t++)
      if (used_[t] == kBeside) out_.beside.push_back(t);
    return std::move(out_);
  }

 private:
  enum Use : u8 { kFree, kCodes, kBeside };

  void add(const Error& e, i64 tensor) {
    Error copy = e;
    if (copy.tensor().empty()) copy.tensor(store_.name(tensor));
    i64 about = parts_.find(copy.tensor());
    Finding finding = to_finding(copy);
    Chunk chunk = store_.chunk(about < 0 ? tensor : about, 0);
    if (finding.file.empty() && chunk.file >= 0) finding.file = store_.files()[chunk.file].path;
    out_.findings.push_back(std::move(finding));
    used_[tensor] = kCodes;
  }

  void take(QuantizedTensor found) {
    used_[found.codes] = kCodes;
    for (i64 t : {found.scales, found.tensor_scale, found.zero_points, found.shape, found.groups})
      if (t >= 0) used_[t] = kBeside;
    out_.tensors.push_back(std::move(found));
  }

  std::optional<QuantizedTensor> codes_at(i64 t) {
    std::string_view name = store_.name(t);
    if (is_activation_scale(name)) return std::nullopt;  // zero points may be of FP8 or I8, as codes are
    if (name.ends_with("_blocks")) return mxfp4_blocks(parts_, t);
    if (name.ends_with(".weight_packed")) return packed_weight(parts_, t);
    if (store_.dtype(t) == DType::kU8 && name.ends_with(".weight")) return nvfp4_weight(parts_, t);
    if (store_.dtype(t) == DType::kI8 && name.ends_with(".weight")) {
      std::optional<QuantizedTensor> found = int8_weight(parts_, t);
      if (!found) found = fp4_weight(parts_, t);
      // Integers without scales are codes only where a config says that there are any.
      if (!found && config_ && config_->method == QuantMethod::kCompressedTensors) bare_.push_back(t);
      return found;
    }
    if (!is_fp8(store_.dtype(t))) return std::nullopt;
    std::optional<QuantizedTensor> found = fp8_weight(parts_, t);
    if (!found) bare_.push_back(t);
    return found;
  }

  // The name of the values that codes of a faulty tensor would have.
  static std::string_view values_name(std::string_view codes) {
    for (std::string_view end : {"_packed", "_blocks"})
      if (codes.ends_with(end)) return codes.substr(0, codes.size() - end.size());
    return codes;
  }

  // Everything that no codes took: scales of activations, scales without codes, codes without scales.
  void judge_rest() {
    bool quantised = config_ || !out_.tensors.empty();
    for (i64 t = 0; t < store_.tensor_count(); t++) {
      if (used_[t] != kFree) continue;
      std::string_view name = store_.name(t);
      if (quantised && name.ends_with(".pre_quant_scale")) {
        add(Error(Code::kQuantized, "weights whose inputs are multiplied by pre_quant_scale are not decoded")
                .help("load the model in the library that wrote it and save it in bfloat16"),
            t);
        continue;
      }
      bool activation = is_activation_scale(name);
      if (activation && quantised) used_[t] = kBeside, out_.of_activations.push_back(t);
      if (activation || !quantised || !is_lonely_scale(name)) continue;
      add(lonely_scale(t), t);
      used_[t] = kBeside;
    }
    if (quantised)
      for (i64 t : bare_)
        if (used_[t] == kFree && !is_scale_of_faulty(store_.name(t)))
          add(Error(Code::kQuantMisfit, "codes have no scales")
                  .expected(cat(escaped(store_.name(t)), "_scale_inv or _scale"))
                  .found("no such tensor"),
              t);
  }

  Error lonely_scale(i64 t) const {
    i64 scaled = parts_.find(scaled_name(store_.name(t)));
    if (scaled < 0)
      return Error(Code::kQuantMisfit, "a scale has no codes")
          .expected("the codes that it multiplies")
          .found("none");
    if (used_[scaled] == kCodes)
      return Error(Code::kQuantMisfit,
                   cat("codes of this kind have no such part: ", escaped(store_.name(scaled))))
          .expected("codes and scales as docs/formats/quantized.md lists them")
          .found(cat(escaped(store_.name(t)), " beside codes of ", dtype_name(store_.dtype(scaled))));
    return Error(Code::kQuantMisfit,
                 cat("a scale belongs to a tensor that has no codes: ", escaped(store_.name(scaled))))
        .expected("codes of a type that has scales, as F8_E4M3")
        .found(dtype_name(store_.dtype(scaled)));
  }

  // Whether the name belongs to a scale whose codes are not there. Codes that have a finding of their own
  // are.
  bool is_lonely_scale(std::string_view name) const {
    return !scaled_name(name).empty() && !is_scale_of_faulty(name);
  }
  bool is_scale_of_faulty(std::string_view name) const { return faulty_.contains(scaled_name(name)); }

  // Blocks of other sizes than 128 x 128 have grids of scales that may fit all the same, so nothing is
  // guessed.
  void judge_silence() {
    if (silent_.empty() || out_.tensors.empty()) return;
    Finding f = to_finding(
        Error(Code::kQuantMisfit, "the tensors are quantised, and the config does not declare it")
            .tensor(out_.tensors[0].name)
            .expected("an entry quantization_config, with the method and the sizes of blocks or groups")
            .found(
                cat("no such entry, and codes with scales of ", counted(std::ssize(out_.tensors), "tensor")))
            .help(
                "put quantization_config into config.json, as the original model has it: without it transformers takes the codes for weights"));
    f.file = silent_;
    out_.findings.push_back(std::move(f));
  }

  // The config declares quantised activations or caches alone.
  void judge_no_weights() {
    if (out_.tensors.empty()) return;
    Finding f = to_finding(
        Error(Code::kQuantMisfit, "the tensors are quantised, and the config declares no quantised weights")
            .tensor(out_.tensors[0].name)
            .expected(cat("settings of weights, as those of ", escaped(out_.tensors[0].name)))
            .found(cat(config_->text, " of activations or caches alone"))
            .help("put the quantization_config of the original model into config.json"));
    f.file = config_->file;
    out_.findings.push_back(std::move(f));
  }

  void judge_method() {
    if (!config_ || !out_.findings.empty()) return;
    if (!config_->of_weights) return judge_no_weights();
    if (out_.tensors.empty()) {
      Finding f = to_finding(
          Error(Code::kQuantMisfit, "the config declares quantised weights, and no tensor is quantised")
              .expected(cat("codes and scales of ", config_->text))
              .found("tensors of floating-point numbers")
              .help("take quantization_config out of config.json if the weights are not quantised"));
      f.file = config_->file;
      out_.findings.push_back(std::move(f));
    }
    if (!out_.tensors.empty() && !config_->impossible.empty()) {
      Finding f = to_finding(
          Error(Code::kQuantMisfit, "the config declares a quantisation that its library does not load")
              .expected(cat("settings of one kind of scales, as those of ", escaped(out_.tensors[0].name)))
              .found(config_->impossible)
              .help("put the quantization_config of the original model into config.json"));
      f.file = config_->file;
      out_.findings.push_back(std::move(f));
    }
    for (const QuantizedTensor& q : out_.tensors) {
      // DeepSeek-V4 declares the FP8 of all other matrices; its experts have an entry of their own,
      // expert_dtype.
      const bool bytes_of_fp4 = q.layout.codes == CodeFormat::kE2M1 && store_.dtype(q.codes) == DType::kI8;
      if (bytes_of_fp4 && config_->method == QuantMethod::kFp8) continue;
      std::string claim = contradicted_claim(*config_, q.layout);
      if (claim.empty()) continue;
      add(Error(Code::kQuantMisfit, "the config declares another quantisation than the tensors have")
              .expected(cat(claim, " by ", config_->file))
              .found(cat(scheme_text(q.layout), ", codes ", dtype_name(store_.dtype(q.codes)),
                         q.layout.zero_points ? ", with zero points" : "")),
          q.codes);
      return;
    }
  }

  const Store& store_;
  const std::optional<QuantConfig>& config_;
  const std::string& silent_;
  PartFinder parts_;
  std::vector<Use> used_;
  std::vector<i64> bare_;             // codes without scales
  NameSet<std::string_view> faulty_;  // names of values whose codes have a finding
  QuantizedModel out_;
};

}  // namespace

const Finding* QuantizedModel::contradiction() const {
  auto found = std::ranges::find(findings, false, &Finding::warning);
  return found == findings.end() ? nullptr : &*found;
}

QuantizedModel recognise(const Store& store, const QuantDeclaration& declared) {
  return Recogniser(store, declared).run();
}

bool has_codes(const Store& store) { return !recognise(store, {}).empty(); }

}  // namespace mckpt::impl
