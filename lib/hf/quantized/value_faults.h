// Codes and scales that no writer means, such as NaN. A conversion sees them while it computes values, so
// that nothing is read a second time:
//
//   refused    scales that are NaN, infinite or negative, codes that are NaN or infinite, a scale of a tensor that is zero
//   reported   scales of blocks that are zero: some quantisers write 0 for a block of zeros
//   a loss     finite codes and scales whose product is beyond the type of the values, as a cast that overflows
#pragma once

#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/quantized/checks.h"
#include "io/store/finding.h"

namespace mckpt::impl {

class LostValues;
class Store;
class TensorReader;
enum class BadNumbers : u8;
struct QuantizedModel;
struct QuantizedTensor;

// All faults of one quantised tensor: problems, and warnings for blocks' scales of zero. Reads all its
// scales, and with `codes` all codes that can be bad. The reader is of the store.
std::vector<Finding> number_findings(const Store& store, const QuantizedTensor& tensor, TensorReader& reader,
                                     bool codes);

// The faults that the reads of one view have seen. Thread-safe.
class ValueFaults {
 public:
  // Both outlive it.
  ValueFaults(const Store& source, const QuantizedModel& model, BadNumbers how);

  // Codes, scales and the values made of them, of one read. Throws kBadScale with all faults of the tensor,
  // if bad numbers are refused. `codes` may be empty where no code can be bad.
  void look_at(const QuantizedTensor& tensor, const QuantLayout& layout, std::span<const u8> codes,
               const ScaleRange& scales, DType type, std::span<const u8> values);
  // The scale of the whole tensor, if it has one, which is in the layout. Throws as above.
  void look_at_tensor_scale(const QuantizedTensor& tensor, const QuantLayout& layout);

  // For the end of a conversion: the infinite values that were made of finite numbers; which tensors have
  // something to report (one number for each, 1: it has), which several ranks bring together; and the report,
  // which reads.
  void add_losses(LostValues& lost) const;
  std::vector<i64> marks() const;
  std::vector<Finding> findings(std::span<const i64> marks) const;

 private:
  void bad(const QuantizedTensor& tensor);
  void mark(const QuantizedTensor& tensor);

  const Store& source_;
  const QuantizedModel& model_;
  BadNumbers how_;
  mutable std::mutex mutex_;
  std::vector<i64> marks_;
  std::map<std::string, i64> infinite_;
};

}  // namespace mckpt::impl
