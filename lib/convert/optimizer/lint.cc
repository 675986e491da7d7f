// The parts in the order in which a person reads them.
#include "convert/optimizer/lint.h"

#include "convert/optimizer/remarks.h"

namespace mckpt::impl {

std::vector<Finding> lint(const OptimizerContent& content) {
  Remarks remarks(content);
  remark_decay(remarks);
  remark_experts(remarks);
  remark_options(remarks);
  remark_states(remarks);
  return std::move(remarks.found);
}

}  // namespace mckpt::impl
