// The proof of a whole conversion. What is proved, and how, is in convert/jobs/proof.h.
#include "convert/plan/conversion.h"

#include "core/base/text.h"
#include "io/copy/job.h"
#include "io/copy/read_sums.h"
#include "io/store/shared_tensors.h"
#include "io/store/store.h"

namespace mckpt::impl {

Conversion::Conversion() = default;
Conversion::Conversion(Conversion&&) noexcept = default;
Conversion::~Conversion() = default;

void note_shared(Conversion& conversion, const std::vector<i64>& tensors) {
  std::vector<i64> shared = shared_tensors(*conversion.store, tensors);
  conversion.shared_tensors = std::ssize(shared);
  if (shared.empty()) return;
  std::vector<std::string_view> names;
  for (i64 t : shared) names.push_back(conversion.store->name(t));
  conversion.details.note(cat(
      "note    these tensors share storage in the source (tied weights or views) and are written in full: ",
      listed(names)));
}

void add_beside(Conversion& conversion, FsdpFolder::Beside beside) {
  conversion.beside = std::move(beside);
  if (const std::vector<std::string>& folders = conversion.beside.left_out(); !folders.empty())
    conversion.details.warn(
        cat("folders beside the model's files are not copied into the result: ", listed(folders, 20)));
}

void prove(Conversion& conversion, int threads, bool by_tensor, std::function<bool()> stop) {
  conversion.proof.threads = threads;
  conversion.proof.stop = std::move(stop);
  const CopyJob& job = conversion.proved_job ? *conversion.proved_job : *conversion.job;
  TensorAccount* tensors = by_tensor ? &conversion.tensors.emplace() : nullptr;
  conversion.account = prove(job, conversion.proof, tensors);
  if (conversion.behind) {
    conversion.account.tensors_in = conversion.behind->tensors;
    conversion.account.dropped += conversion.behind->dropped;
  }
  conversion.proof.stop = {};  // what it refers to may end with this call
}

}  // namespace mckpt::impl
