// Scales are read tensor by tensor, with all threads; a model has one scale for thousands of codes.
#include "convert/compare/checks/quantized.h"

#include <algorithm>
#include <memory>

#include "core/base/error.h"
#include "core/items/shape.h"
#include "core/quantized/checks.h"
#include "hf/quantized/dequantized_store.h"
#include "io/file/parallel.h"
#include "io/store/finding.h"
#include "io/store/findings.h"
#include "io/store/store.h"
#include "io/store/store_files.h"
#include "io/values/tensor_reader.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

class ScaleCheck {
 public:
  ScaleCheck(const Store& store, const QuantizedModel& model) : store_(store), files_(store), model_(model) {}

  std::vector<Finding> run(int threads) {
    std::vector<std::unique_ptr<TensorReader>> readers(static_cast<std::size_t>(threads));
    for (auto& reader : readers) reader = std::make_unique<TensorReader>(store_, files_);
    parallel_for(std::ssize(model_.tensors), threads, [&](int worker, i64 i) {
      const QuantizedTensor& q = model_.tensors[i];
      try {
        check_scales(*readers[worker], q, q.scales, i);
        if (q.tensor_scale >= 0) check_scales(*readers[worker], q, q.tensor_scale, i);
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

  void add(i64 place, i64 tensor, std::string message, bool warning) {
    Finding finding{.code = Code::kBadScale,
                    .tensor = std::string(store_.name(tensor)),
                    .file = std::string(file_label(store_, store_.chunk(tensor, 0).file)),
                    .message = std::move(message),
                    .warning = warning};
    found_.add(place, std::move(finding));
  }

  void check_scales(TensorReader& reader, const QuantizedTensor& q, i64 tensor, i64 place) {
    ScaleFaults f = count_scale_faults(store_.dtype(tensor), read(reader, tensor));
    if (!f.any()) return;
    auto tell = [&](i64 count, std::string_view what, bool warning) {
      if (count > 0)
        add(place, tensor,
            cat("scales of ", escaped(q.name), " that are ", what, ": ", with_commas(count), " of ",
                with_commas(f.scales), "; the first bad one has number ", with_commas(f.first)),
            warning);
    };
    tell(f.nan, "NaN", false);
    tell(f.infinite, "infinite", false);
    tell(f.negative, "negative", false);
    // Some quantisers write 0 for a block of zeros.
    tell(f.zero, "zero", true);
  }

  void check_padding(TensorReader& reader, const QuantizedTensor& q, i64 place) {
    if (q.layout.columns * q.layout.int_bits % 32 == 0) return;
    CodeFaults f = count_code_faults(q.layout, 0, q.layout.all_rows(), read(reader, q.codes));
    if (f.padding > 0)
      add(place, q.codes,
          cat("rows with bits that are not zero behind the last of ", q.layout.columns,
              " columns: ", with_commas(f.padding), " of ", with_commas(q.layout.all_rows())),
          false);
  }

  const Store& store_;
  StoreFiles files_;
  const QuantizedModel& model_;
  PlacedFindings found_;
};

}  // namespace

void check_quantized(const Store& store, int threads, VerifyReport& report) {
  if (format_family(store.format()) != FormatFamily::kSafetensors) return;
  Check check{"scales", Check::Status::kPass, 0, "tensors"};
  QuantizedModel model;
  try {
    model = recognise(store, quant_config_of(store));
  } catch (const Error& e) {
    // A config that cannot be read is a finding of another check.
    if (e.code() != Code::kQuantized) return;
    check.status = Check::Status::kNone;
    check.note = cat("not checked: ", e.message());
    return report.add(std::move(check), {});
  }
  if (model.empty()) return;
  std::vector<Finding> found = std::move(model.findings);
  for (Finding& f : ScaleCheck(store, model).run(threads)) found.push_back(std::move(f));
  check.count = std::ssize(model.tensors);
  for (const Finding& f : found)
    check.status = std::max(check.status, f.warning ? Check::Status::kWarn : Check::Status::kFail);
  report.add(std::move(check), std::move(found));
}

}  // namespace mckpt::impl
