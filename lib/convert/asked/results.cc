// Copies field by field; what shares storage in the result counts as tied.
#include "convert/asked/results.h"

#include <limits>

#include "convert/plan/account_text.h"
#include "convert/plan/conversion.h"
#include "convert/run/run.h"
#include "io/values/tensor_stats.h"

namespace mckpt::impl {

mckpt::Account account_of(const Conversion& c) {
  const Account& a = c.account;
  return {.tensors_in = a.tensors_in,
          .tensors_out = a.tensors_out,
          .copied = a.copied,
          .fused = a.fused,
          .split = a.split,
          .tied = tied_tensors(c),
          .padded = a.padded,
          .unpadded = a.unpadded,
          .changed = a.changed,
          .dropped = a.dropped,
          .dropped_objects = c.dropped_objects,
          .invented = a.invented,
          .dequantized = a.dequantized,
          .quantized = a.quantized};
}

mckpt::RunReport run_report_of(const Conversion& c, const RunResult& result) {
  mckpt::RunReport report{.output = c.path,
                          .bytes = c.bytes,
                          .bytes_read = result.counts.bytes_read,
                          .bytes_written = result.counts.bytes_written,
                          .rounded_norms = result.counts.rounded,
                          .became_infinite = result.became_infinite,
                          .became_zero = result.became_zero};
  for (const LostValues::Tensor& t : result.overflowed) report.overflowed.push_back(t.name);
  return report;
}

mckpt::Statistics statistics_of(const TensorStats& s) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  const auto of_finite = [&](double value) { return s.finite > 0 ? value : kNone; };
  return {.numbers = s.numbers,
          .finite = s.finite,
          .zeros = s.zeros,
          .nan = s.non_finite.nans,
          .infinite = s.non_finite.infinities,
          .min = of_finite(static_cast<double>(s.min)),
          .max = of_finite(static_cast<double>(s.max)),
          .mean = of_finite(s.mean),
          .deviation = of_finite(s.deviation),
          .l2 = of_finite(l2_norm(s))};
}

}  // namespace mckpt::impl
