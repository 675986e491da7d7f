// The folder is opened as every conversion opens it, so verify and the conversions accept the same folders.
// Copies are read, because checksums that a writer stored prove nothing about what it wrote.
#include "convert/compare/checks/ranks.h"

#include "convert/source/checkpoint.h"
#include "convert/source/options.h"
#include "convert/source/source_model.h"
#include "core/base/error.h"
#include "io/store/finding.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/verify/verify.h"

namespace mckpt::impl {
namespace {

constexpr const char* kNotCompared = "not compared with each other or with config.json";

// Errors because of which the files cannot be compared, though nothing is wrong with them: mckpt does not
// know the model, or the folder does not say on which grid it was written.
bool is_unknown(Code code) {
  return code == Code::kUnknownModel || code == Code::kUnsupportedModel || code == Code::kUnknownAssets ||
         code == Code::kUnknownPartition || code == Code::kModuleMissing;
}

}  // namespace

void check_ranks(const Store& store, VerifyReport& report) {
  if (store.format() != Format::kMegatronRanks || !is_sound(store)) return;
  Check check{.name = "ranks", .unit = "tensors", .note = kNotCompared};
  if (own_assets(store).empty()) return report.add(std::move(check), {});
  CheckpointOptions options;
  options.read_copies = true;
  options.model.files = store.opening();
  try {
    open_checkpoint(store.root(), options);
    check.status = Check::Status::kPass;
  } catch (const Error& e) {
    if (e.code() == Code::kInterrupted) throw;
    if (is_unknown(e.code())) {
      check.note = cat(kNotCompared, ": ", e.message());
      return report.add(std::move(check), {});
    }
    check.status = Check::Status::kFail;
    check.count = store.tensor_count(), check.note.clear();
    return report.add(std::move(check), {to_finding(e)});
  }
  check.count = store.tensor_count(), check.note.clear();
  report.add(std::move(check), {});
}

}  // namespace mckpt::impl
