// CarriedRecord: an object of the source (a training run's args, an iteration, a random state) whose stored
// bytes are copied into the result unchanged. The object is not unpickled: one copy task of bytes carries it,
// and the checksums in its archive show whether the bytes that were read are those that were written.
//
//   source  __0_0.distcp, byte 4096, 812 bytes   "args"   -->   result  __2_0.distcp, behind the chunks of rank 2
#pragma once

#include "io/copy/job.h"
#include "io/copy/read_sums.h"
#include "io/dcp/layout.h"

namespace mckpt::impl {

// One object: its place in the source's files, its place in the result's files, its length. Plain numbers,
// which refer to nothing.
struct CarriedRecord {
  i32 from_file, to_file;
  i64 from, to, bytes;
  std::string name;  // of the object, for messages

  // A finished plan with one move of `bytes` bytes. The task has no checksums: sums_of_record() reads them.
  CopyTask task() const;
};

// Gives the object a place in the rank's file of the layout, behind everything that the file contains so far.
// pre: all chunks of the rank are in the layout. Throws kRecordMissing if the object has no bytes in any
// file.
CarriedRecord carry_object(const Store& source, const Object& object, DcpLayout& layout, DcpName name,
                           i32 rank);

// The checksums of the items of the archive that the record is; empty if its format keeps none. `file` is the
// source's file number `record.from_file`. Throws what opening an archive throws: a record that cannot be
// opened is not copied.
std::vector<Checksum> sums_of_record(const ByteSource& file, const CarriedRecord& record);

// Adds to `sums` the checksums of objects that are files of their own beside the data, such as the common.pt
// of torch_dist, and are copied with the checkpoint.
void expect_object_files(ReadSums& sums, const Store& store);

}  // namespace mckpt::impl
