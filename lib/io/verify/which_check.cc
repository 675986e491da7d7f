// Codes of no other check are about the form of headers.
#include "io/verify/which_check.h"

namespace mckpt::impl::verify_check {

Which check_of_code(Code code) {
  switch (code) {
    case Code::kNotFound:
    case Code::kBadPath:
    case Code::kNotAFile:
    case Code::kReadFailed:
    case Code::kCutShort:
    case Code::kShardMissing:
    case Code::kUnusedFile:
    case Code::kTwoModels:
    case Code::kIncomplete:
    case Code::kRecordOutside:
      return kFiles;
    case Code::kBadIndex:
    case Code::kIndexMismatch:
    case Code::kBadTotalSize:
    case Code::kRecordMissing:
    case Code::kRecordUnused:
    case Code::kRecordOverlap:
      return kIndex;
    case Code::kBadShards:
    case Code::kShardAlone:
    case Code::kChunkOutside:
    case Code::kChunkHole:
    case Code::kChunkOverlap:
      return kCoverage;
    case Code::kItemMismatch:
      return kItems;
    case Code::kBadChecksum:
    case Code::kBadManifest:
    case Code::kNoChecksums:
      return kCrc;
    case Code::kCounterpart:
    case Code::kNumberGap:
    case Code::kPipelineLoss:
    case Code::kMixedSaves:
      return kParts;
    case Code::kNonFinite:
    case Code::kImplausible:
      return kValues;
    case Code::kEqualExperts:
      return kExperts;
    default:
      return kFormat;
  }
}

}  // namespace mckpt::impl::verify_check
