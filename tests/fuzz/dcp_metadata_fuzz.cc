// Any bytes as a .metadata: parsed, joined and checked, or refused with an Error.
#include "core/base/error.h"
#include "io/dcp/check/boxes.h"
#include "io/dcp/check/loading.h"
#include "io/dcp/metadata/metadata.h"
#include "io/store/findings.h"
#include "tests/fuzz/mutate/mixed.h"

using namespace mckpt::impl;

extern "C" int LLVMFuzzerTestOneInput(const u8* data, std::size_t size) {
  try {
    DcpMetadata metadata = parse_dcp_metadata({data, size});
    Findings findings;
    check_boxes(metadata, findings);
    check_records(metadata, std::vector<i64>(metadata.files.size(), 1 << 20), findings);
    loading_faults({data, size});
  } catch (const Error&) {
  }
  return 0;
}

MCKPT_MUTATED_AS(mckpt::impl::mutate::pickle)
