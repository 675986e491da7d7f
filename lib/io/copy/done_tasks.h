// Whether a task that the log has as done is so: the bytes in the unfinished result are those that were
// written. Anything may have happened to the files meanwhile: a cleaner of scratch disks removed them, a disk
// lost pages, a program opened one for writing.
//
//   log       task 7: the data of its destinations had the sums 9c11ab52 and 07f3d48e
//   result    |head| data |tail|  ..  |head| data |tail|     data: summed and compared
//                                                            heads and tails: made again by the job, and compared
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class CopyJob;
class WrittenSums;
struct CopyTask;
struct DoneTask;
struct OutputFile;

// Reads the task's destinations from the files in `folder`. True: all bytes are as they were written, and the
// sums of the data are added to `sums`. Throws kReadFailed.
bool is_as_written(const CopyJob& job, const CopyTask& task, const DoneTask& done, const std::string& folder,
                   const std::vector<OutputFile>& files, WrittenSums& sums);
// One sum of the checksums that the source has of what the task reads: another source has others.
u32 stated_sum(const CopyTask& task);

}  // namespace mckpt::impl
