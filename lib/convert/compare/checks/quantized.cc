// Scales are read tensor by tensor, with all threads; a model has one scale for thousands of codes.
#include "convert/compare/checks/quantized.h"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>

#include "core/base/error.h"
#include "core/base/text.h"
#include "core/items/shape.h"
#include "core/quantized/checks.h"
#include "hf/quantized/dequantized_store.h"
#include "hf/quantized/scheme.h"
#include "hf/quantized/value_faults.h"
#include "io/file/parallel.h"
#include "io/store/finding.h"
#include "io/store/findings.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

constexpr const char* kValuesAlone =
    "mckpt convert dequantize makes a model of the values, which all programs read alike";

class ScaleCheck {
 public:
  ScaleCheck(const Store& store, const QuantizedModel& model) : store_(store), files_(store), model_(model) {}

  std::vector<Finding> run(int threads) {
    std::vector<std::unique_ptr<TensorReader>> readers(static_cast<std::size_t>(threads));
    for (auto& reader : readers) reader = std::make_unique<TensorReader>(store_, files_);
    parallel_for(std::ssize(model_.tensors), threads, [&](int worker, i64 i) {
      const QuantizedTensor& q = model_.tensors[i];
      try {
        // NaN and infinities among codes are found by the check of values.
        for (Finding& f : number_findings(store_, q, *readers[worker], false)) found_.add(i, std::move(f));
        if (q.shape >= 0) refuse_other_shape(store_, q, read(*readers[worker], q.shape));
        if (q.groups >= 0) groups_of_columns(store_, q, read(*readers[worker], q.groups));
        if (q.layout.codes == CodeFormat::kPackedInt) check_padding(*readers[worker], q, i);
      } catch (const Error& e) {
        if (e.code() == Code::kInterrupted) throw;
        found_.add(i, to_finding(e));
      }
    });
    return found_.take();
  }

 private:
  std::vector<u8> read(TensorReader& reader, i64 tensor) const {
    std::vector<u8> bytes;
    bytes.reserve(static_cast<std::size_t>(TensorReader::tensor_bytes(store_, tensor)));
    reader.read(tensor,
                [&](std::span<const u8> part, i64) { bytes.insert(bytes.end(), part.begin(), part.end()); });
    return bytes;
  }

  void check_padding(TensorReader& reader, const QuantizedTensor& q, i64 place) {
    if (!q.layout.whole_codes && q.layout.columns * q.layout.int_bits % 32 == 0) return;
    CodeFaults f = count_code_faults(q.layout, 0, q.layout.all_rows(), read(reader, q.codes));
    if (f.padding.count == 0) return;
    found_.add(place, {.code = Code::kBadScale,
                       .tensor = std::string(store_.name(q.codes)),
                       .file = std::string(file_label(store_, store_.chunk(q.codes, 0).file)),
                       .message = cat(
                           "rows with bits that are not zero ",
                           q.layout.whole_codes ? "behind the codes of a word, of " : "behind the last of ",
                           q.layout.columns, " columns: ", with_commas(f.padding.count), " of ",
                           with_commas(q.layout.all_rows()), ", the first is row ",
                           f.padding.first / q.layout.columns)});
  }

  const Store& store_;
  StoreFiles files_;
  const QuantizedModel& model_;
  PlacedFindings found_;
};

// Names of scales that transformers does not read where config.json says the method fp8. A table of
// embeddings is an exception: its scale is weight_scale there, too.
void add_unread_scales(const Store& store, const QuantizedModel& model,
                       const std::optional<QuantConfig>& config, std::vector<Finding>& out) {
  if (!config || config->method != QuantMethod::kFp8) return;
  std::vector<const QuantizedTensor*> unread;
  for (const QuantizedTensor& q : model.tensors)
    if (q.name.ends_with(".weight") && q.name.find("embed") == q.name.npos &&
        store.name(q.scales) == cat(q.name, "_scale"))
      unread.push_back(&q);
  if (unread.empty()) return;
  const bool of_tensors = std::ranges::all_of(
      unread, [&](const QuantizedTensor* q) { return store.shape(q->scales).items() == 1; });
  out.push_back(
      {.code = Code::kQuantMisfit,
       .tensor = std::string(store.name(unread[0]->scales)),
       .file = std::string(file_label(store, store.chunk(unread[0]->scales, 0).file)),
       .message =
           cat("the scales of ", counted(std::ssize(unread), "tensor"), " are named weight_scale, and ",
               config->file,
               " says quant_method fp8: transformers 5 reads weight_scale_inv alone there and takes the "
               "codes for weights; mckpt multiplies the codes by these scales",
               of_tensors ? ", as vLLM does" : ""),
       .help = kValuesAlone,
       .warning = true});
}

// Settings with which some releases of compressed-tensors load no model. Without them all releases read the
// same values, unless groups are in an order: where the setting is not read, the order is not either.
// `decoded`: the values are known.
void add_disputed(const std::optional<QuantConfig>& config, const QuantizedModel& model, bool decoded,
                  std::vector<Finding>& out) {
  if (!config) return;
  const bool in_order = std::ranges::any_of(model.tensors, [](const auto& q) { return q.groups >= 0; });
  const std::string_view help = !decoded ? ""
                                : in_order
                                    ? kValuesAlone
                                    : "take the setting out of quantization_config: no value depends on it";
  for (const std::string& text : config->disputed)
    out.push_back({.code = Code::kQuantMisfit,
                   .file = config->file,
                   .message = text,
                   .help = std::string(help),
                   .warning = true});
}

// The files have no fault where codes are of a kind that is not decoded. Takes these findings out, and
// returns the words for them, "" for none.
std::string take_undecoded(std::vector<Finding>& findings) {
  const auto first = std::ranges::find(findings, Code::kQuantized, &Finding::code);
  if (first == findings.end()) return "";
  const std::string cause = first->message;
  const auto count = std::erase_if(findings, [](const Finding& f) { return f.code == Code::kQuantized; });
  return cat(counted(static_cast<i64>(count), "tensor"), " not checked: ", cause);
}

}  // namespace

void check_quantized(const Store& store, int threads, VerifyReport& report) {
  if (format_family(store.format()) != FormatFamily::kSafetensors) return;
  Check check{"scales", Check::Status::kPass, 0, "tensors"};
  QuantizedModel model;
  QuantDeclaration declared;
  try {
    declared = quant_declaration_of(store);
    model = recognise(store, declared);
  } catch (const Error& e) {
    const bool unread = e.code() == Code::kBadConfig;
    // Any other fault of a config is a finding of another check.
    if (!unread && e.code() != Code::kQuantized) return;
    check.status = unread ? Check::Status::kFail : Check::Status::kNone;
    check.note = cat("not checked: ", e.message());
    std::vector<Finding> found;
    if (unread) found.push_back(to_finding(e));
    return report.add(std::move(check), std::move(found));
  }
  if (model.tensors.empty() && model.findings.empty()) return;
  std::vector<Finding> found = std::move(model.findings);
  check.note = take_undecoded(found);
  std::vector<Finding> of_scales = ScaleCheck(store, model).run(threads);
  auto warns = [](const Finding& f) { return f.warning; };
  const bool decoded =
      check.note.empty() && std::ranges::all_of(found, warns) && std::ranges::all_of(of_scales, warns);
  add_unread_scales(store, model, declared.config, found);
  add_disputed(declared.config, model, decoded, found);
  std::ranges::move(of_scales, std::back_inserter(found));
  check.count = std::ssize(model.tensors);
  const bool nothing = !check.note.empty() && model.tensors.empty() && found.empty();
  check.status = nothing ? Check::Status::kNone : status_of(found);
  report.add(std::move(check), std::move(found));
}

}  // namespace mckpt::impl
