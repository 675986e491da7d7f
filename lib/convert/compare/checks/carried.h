// The check "carried" of a comparison: attributes and quantizers that records of torch DCP carry beside the
// elements of their tensors. torch.distributed.checkpoint leaves them behind when it loads a record, and no
// comparison reads them.
#pragma once

namespace mckpt::impl {

class Store;
struct VerifyReport;

// Adds the check, which says that these values were not compared, if a record has some. pre: the tensors of
// both sides were compared, so that their records were read.
void name_carried_values(const Store& tested, const Store& source, VerifyReport& report);

}  // namespace mckpt::impl
