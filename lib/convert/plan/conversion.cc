// The proof of a whole conversion; what is proved, and how, is in convert/jobs/proof.
#include "convert/plan/conversion.h"

namespace mckpt {

void add_beside(ConversionPlan& conversion, FsdpFolder::Beside beside) {
  conversion.beside = std::move(beside);
  if (const std::vector<std::string>& folders = conversion.beside.left_out(); !folders.empty())
    conversion.details.warn(
        cat("folders beside the model's files are not in the result: ", listed(folders, 20)));
}

void prove(ConversionPlan& conversion, int threads) {
  conversion.proof.threads = threads;
  conversion.account = prove(*conversion.job, conversion.proof);
}

}  // namespace mckpt
