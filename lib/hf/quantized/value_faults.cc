// A read only sees that something is wrong; the whole tensor is looked at again to say how much of it, and
// where.
#include "hf/quantized/value_faults.h"

#include <algorithm>
#include <limits>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "hf/quantized/bad_numbers.h"
#include "hf/quantized/recognise.h"
#include "io/copy/lost_values.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/finite.h"
#include "io/values/tensor_reader.h"

namespace mckpt::impl {
namespace {

constexpr std::size_t kMostReported = 20;  // tensors

double largest_value(DType type) {
  return type == DType::kF16    ? 65504
         : type == DType::kBF16 ? 0x1.fep127
                                : static_cast<double>(std::numeric_limits<float>::max());
}

// The faults of the parts of one tensor, as findings.
class Teller {
 public:
  Teller(const Store& store, const QuantizedTensor& tensor, TensorReader& reader)
      : store_(store), tensor_(tensor), reader_(reader) {}

  void tell_scales(i64 scales, bool of_tensor) {
    std::vector<u8> bytes;
    reader_.read(scales,
                 [&](std::span<const u8> part, i64) { bytes.insert(bytes.end(), part.begin(), part.end()); });
    ScaleFaults f = count_scale_faults(store_.dtype(scales), bytes);
    auto tell = [&](const FaultKind& kind, std::string_view what, bool warning) {
      add(scales, kind, cat("scales of ", escaped(tensor_.name), " that are ", what), f.scales,
          store_.dims(scales), warning);
    };
    tell(f.nan, "NaN", false);
    tell(f.infinite, "infinite", false);
    tell(f.negative, "negative", false);
    tell(f.zero, "zero", !of_tensor);
  }

  void tell_codes() {
    const QuantLayout& l = tensor_.layout;
    if (l.codes != CodeFormat::kE4M3 && l.codes != CodeFormat::kE5M2) return;
    CodeFaults f;
    // A byte each, so the stretch is a row of its own.
    reader_.read(tensor_.codes, [&](std::span<const u8> part, i64 at) {
      QuantLayout row = l;
      row.matrices = row.rows = 1, row.columns = std::ssize(part);
      CodeFaults more = count_code_faults(row, 0, 1, part);
      if (more.nan.count > 0) more.nan.first += at;
      if (more.infinite.count > 0) more.infinite.first += at;
      add_to(f, more);
    });
    std::string name = escaped(tensor_.name);
    add(tensor_.codes, f.nan, cat("codes of ", name, " that are NaN"), f.codes, store_.dims(tensor_.codes),
        false);
    add(tensor_.codes, f.infinite, cat("codes of ", name, " that are infinite"), f.codes,
        store_.dims(tensor_.codes), false);
  }

  std::vector<Finding> found;

 private:
  void add(i64 about, const FaultKind& kind, std::string what, i64 of, std::span<const i64> dims,
           bool warning) {
    if (kind.count == 0) return;
    found.push_back({.code = Code::kBadScale,
                     .tensor = std::string(store_.name(about)),
                     .file = std::string(file_label(store_, store_.chunk(about, 0).file)),
                     .message = cat(what, ": ", with_commas(kind.count), " of ", with_commas(of),
                                    ", the first at ", dims_to_string(item_index(kind.first, dims))),
                     .warning = warning});
  }

  const Store& store_;
  const QuantizedTensor& tensor_;
  TensorReader& reader_;
};

}  // namespace

std::vector<Finding> number_findings(const Store& store, const QuantizedTensor& tensor, TensorReader& reader,
                                     bool codes) {
  Teller teller(store, tensor, reader);
  teller.tell_scales(tensor.scales, false);
  if (tensor.tensor_scale >= 0) teller.tell_scales(tensor.tensor_scale, true);
  if (codes) teller.tell_codes();
  return std::move(teller.found);
}

ValueFaults::ValueFaults(const Store& source, const QuantizedModel& model, BadNumbers how)
    : source_(source), model_(model), how_(how), marks_(model.tensors.size()) {}

void ValueFaults::look_at(const QuantizedTensor& tensor, const QuantLayout& layout, std::span<const u8> codes,
                          const ScaleRange& scales, DType type, std::span<const u8> values) {
  if (how_ == BadNumbers::kShow) return;
  if (scales.bad || has_bad_codes(layout.codes, codes)) return bad(tensor);
  if (scales.zero) mark(tensor);
  double largest = scales.largest * largest_code(layout);
  if (layout.tensor_rule == TensorScale::kTimes) largest *= static_cast<double>(layout.tensor_scale);
  if (layout.tensor_rule > TensorScale::kTimes) largest /= static_cast<double>(layout.tensor_scale);
  // A product of 16 bits has been rounded before.
  if (largest < largest_value(layout.product_is_f16 ? DType::kF16 : type)) return;
  NonFinite found;
  scan_non_finite(type, values, 0, found);
  if (found.infinities == 0) return;
  std::lock_guard lock(mutex_);
  infinite_[tensor.name] += found.infinities;
}

void ValueFaults::look_at_tensor_scale(const QuantizedTensor& tensor, const QuantLayout& layout) {
  if (how_ == BadNumbers::kShow || tensor.tensor_scale < 0) return;
  bool usable = layout.tensor_scale > 0 && layout.tensor_scale <= std::numeric_limits<float>::max();
  if (!usable) bad(tensor);
}

void ValueFaults::bad(const QuantizedTensor& tensor) {
  if (how_ == BadNumbers::kReport) return mark(tensor);
  StoreFiles files(source_);
  TensorReader reader(source_, files);
  std::vector<Finding> found = number_findings(source_, tensor, reader, true);
  std::erase_if(found, [](const Finding& f) { return f.warning; });
  // pre: the read has seen one.
  Error e(Code::kBadScale, found.empty() ? "a bad number is not there any more" : found[0].message);
  if (!found.empty()) e.tensor(found[0].tensor).file(file_path(source_, source_.chunk(tensor.codes, 0).file));
  for (const Finding& f : found)
    if (&f != &found[0]) e.note(cat(escaped(f.tensor), ": ", f.message));
  throw e.help("mckpt verify lists all of them; `accept` MC2017 converts the model as it is");
}

void ValueFaults::mark(const QuantizedTensor& tensor) {
  std::lock_guard lock(mutex_);
  marks_[&tensor - model_.tensors.data()] = 1;
}

void ValueFaults::add_losses(LostValues& lost) const {
  std::lock_guard lock(mutex_);
  for (const auto& [name, items] : infinite_) lost.add(name, {items, 0});
}

std::vector<i64> ValueFaults::marks() const {
  std::lock_guard lock(mutex_);
  return marks_;
}

std::vector<Finding> ValueFaults::findings(std::span<const i64> marks) const {
  StoreFiles files(source_);
  TensorReader reader(source_, files);
  std::vector<Finding> out;
  std::size_t tensors = 0;
  for (std::size_t i = 0; i < marks.size(); i++) {
    if (marks[i] == 0 || ++tensors > kMostReported) continue;
    for (Finding& f : number_findings(source_, model_.tensors[i], reader, true)) {
      f.warning = true;
      out.push_back(std::move(f));
    }
  }
  if (tensors > kMostReported)
    out.push_back({.code = Code::kBadScale,
                   .message = cat(counted(static_cast<i64>(tensors - kMostReported), "more tensor"),
                                  " with such numbers"),
                   .help = "mckpt verify lists all of them",
                   .warning = true});
  return out;
}

}  // namespace mckpt::impl
