// The checks of opening a DCP folder, without reading data: every tensor's chunks cover it exactly once, and
// every record is inside its file and overlaps no other. torch checks none of it when it loads: a hole leaves
// the target's old values. Private to io/dcp.
//
//   boxes of a tensor        records of a file
//   +------+---+             [ chunk of a ][ chunk of b ]....[ object ]
//   |  0   | 1 |                                         ^^^^ gap: allowed
//   +------+---+  <- hole: 2 is missing  [ c ] beyond the end: truncated
//   |  3   |
#pragma once

#include <span>

#include "core/base/int.h"

namespace mckpt::impl {

class Findings;
struct DcpMetadata;

// Adds a finding for each hole, overlap and chunk out of bounds.
void check_boxes(const DcpMetadata& metadata, Findings& findings);

// Adds a finding for each missing file, each record outside its file, too small for its chunk, or
// overlapping another. `file_bytes`: sizes by number of the file; -1: it is missing.
void check_records(const DcpMetadata& metadata, std::span<const i64> file_bytes, Findings& findings);

// Finds bytes behind the last record of a file: left by another save. pre: .metadata names all that the
// files contain, which is not so for the index of a single rank.
void check_ends(const DcpMetadata& metadata, std::span<const i64> file_bytes, Findings& findings);

}  // namespace mckpt::impl
