// The pairing of tensors and parameters is that of every conversion (mappings/model/accounting.h), so verify
// and the conversions accept the same models.
#include "convert/compare/checks/model.h"

#include <algorithm>

#include "core/base/error.h"
#include "hf/model.h"
#include "io/file/folder.h"
#include "io/store/finding.h"
#include "io/store/soundness.h"
#include "io/store/store.h"
#include "io/verify/verify.h"
#include "mappings/model/expand.h"

namespace mckpt::impl {
namespace {

bool is_model_folder(const Store& store) {
  bool safetensors = store.format() == Format::kSafetensorsFolder;
  return safetensors && Folder(store.root(), store.opening()).has_file("config.json") && is_sound(store);
}

}  // namespace

void check_model(const Store& store, VerifyReport& report) {
  if (!is_model_folder(store)) return;
  Check check{"model", Check::Status::kPass, store.tensor_count(), "tensors"};
  try {
    open_hf_model(store.root(), {.files = store.opening()});
    report.add(std::move(check), {});
  } catch (const Error& e) {
    if (e.code() != Code::kUnaccounted) {
      report.add({"model",
                  Check::Status::kNone,
                  0,
                  "tensors",
                  0,
                  {},
                  cat("not compared with config.json: ", e.message())},
                 {});
      return;
    }
    Finding finding = to_finding(e);
    constexpr std::size_t kMostNotes = 5;
    finding.message = e.message();
    for (std::size_t i = 0; i < std::min(e.notes().size(), kMostNotes); i++)
      finding.message += cat("; ", e.notes()[i]);
    if (e.notes().size() > kMostNotes) finding.message += cat("; and ", e.notes().size() - kMostNotes, " more");
    check.status = Check::Status::kFail;
    report.add(std::move(check), {std::move(finding)});
  }
}

}  // namespace mckpt::impl
