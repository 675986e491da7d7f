// Only what there is of it is named, but dropped and invented tensors always are.
#include "convert/plan/account_text.h"

#include "convert/plan/conversion.h"
#include "core/base/text.h"

namespace mckpt::impl {

i64 tied_tensors(const Conversion& c) { return c.account.copies + c.account.tied + c.shared_tensors; }

std::string result_text(const Conversion& c) {
  return c.extent.empty() ? c.format : cat(c.format, ": ", c.extent);
}

std::string account_text(const Conversion& c) {
  const Account& a = c.account;
  std::string what;
  auto part = [&](i64 count, const char* word) {
    if (count > 0) what += cat(what.empty() ? "" : ", ", with_commas(count), " ", word);
  };
  part(a.copied, "copied");
  part(a.fused, "fused");
  part(a.split, "split");
  part(a.dequantized, "dequantized");
  part(a.quantized, "quantized");
  part(a.padded, "padded");
  part(a.unpadded, "with padding dropped");
  part(a.changed, "changed");
  part(tied_tensors(c), "tied");
  return cat(with_commas(a.tensors_in), c.of_files ? " files" : "", " in -> ", with_commas(a.tensors_out),
             " out: ", what.empty() ? "nothing" : what, "; dropped ", a.dropped,
             c.dropped_objects > 0 ? cat(" and ", counted(c.dropped_objects, "object")) : "", ", invented ",
             a.invented);
}

}  // namespace mckpt::impl
