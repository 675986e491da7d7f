// The check "casts" of a comparison: tensors may be equal to what a conversion of the source makes of them
// and still differ from the source, because their type does not have all values of the source's type.
#pragma once

#include <span>
#include <string>

#include "core/base/int.h"

namespace mckpt::impl {

enum class DType : u8;
class Observer;
struct VerifyReport;

// A tensor with its types in the source and where it was compared.
struct ComparedTypes {
  std::string tensor;
  DType source, tested;
};

// Adds the check, with one warning for the tensors of a pair of types, if there are any; and lists every
// tensor whose types differ in the report.
void warn_of_casts(std::span<const ComparedTypes> tensors, VerifyReport& report);
// Notes the casts after which tensors are compared, lossy or not.
void note_casts(std::span<const ComparedTypes> tensors, Observer& observer);

}  // namespace mckpt::impl
