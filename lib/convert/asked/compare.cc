// Words are read one after the other, so that the first wrong one is named.
#include "convert/asked/compare.h"

namespace mckpt::impl {

VerifyOptions verify_options(const mckpt::VerifyOptions& options, const Opening& what) {
  VerifyOptions how{.threads = options.threads,
                    .reports = options.cards.report,
                    .card = options.card,
                    .strict = options.strict,
                    .command = options.cards.command};
  how.compare.opening.assets = options.assets;
  how.compare.model_dict = model_dict_of(options.model_dict);
  how.compare.opening.model.files = opening_of(options.files, what);
  return how;
}

CompareOptions compare_options(const mckpt::CompareOptions& options, const Opening& what) {
  CompareOptions how;
  how.opening = checkpoint_options(options.opening, what);
  how.path_tp = options.path_tp, how.path_etp = options.path_etp;
  how.params_dtype = params_dtype_of(options.params_dtype);
  how.types = type_claim(options.dtype, options.dtype_rule);
  how.model_dict = model_dict_of(options.model_dict);
  how.weights_only = options.weights_only;
  return how;
}

DiffOptions diff_options(const mckpt::DiffOptions& options, const Opening& what) {
  DiffOptions how;
  how.comparing.opening = checkpoint_options(options.opening, what);
  how.comparing.path_tp = options.path_tp, how.comparing.path_etp = options.path_etp;
  how.comparing.model_dict = model_dict_of(options.model_dict);
  how.comparing.threads = options.threads;
  return how;
}

}  // namespace mckpt::impl
