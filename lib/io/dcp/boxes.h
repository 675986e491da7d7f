// What opening a DCP folder checks: every tensor's chunks cover it exactly once, and every record is inside
// its file and overlaps no other. Private to io/dcp.
#pragma once

#include <span>

#include "core/base/int.h"

namespace mckpt::impl {

class Findings;
struct DcpMetadata;

void check_boxes(const DcpMetadata& metadata, Findings& findings);

// `file_bytes` by number of the file; -1: it is not there.
void check_records(const DcpMetadata& metadata, std::span<const i64> file_bytes, Findings& findings);

// Finds bytes behind the last record of a file. pre: .metadata names all that the files hold.
void check_ends(const DcpMetadata& metadata, std::span<const i64> file_bytes, Findings& findings);

}  // namespace mckpt::impl
