// The proof of a whole conversion. What is proved, and how, is in convert/jobs/proof.h.
#include "convert/plan/conversion.h"
#include "core/base/text.h"
#include "io/copy/job.h"
#include "io/copy/read_sums.h"

namespace mckpt::impl {

Conversion::Conversion() = default;
Conversion::Conversion(Conversion&&) noexcept = default;
Conversion::~Conversion() = default;

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
  conversion.proof.stop = {};  // what it refers to may end with this call
}

}  // namespace mckpt::impl
