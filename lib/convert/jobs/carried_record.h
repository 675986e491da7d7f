// A record of the source that goes into the result byte for byte, and its sums.
#pragma once

#include "io/copy/job.h"
#include "io/copy/read_sums.h"

namespace mckpt {

struct CarriedRecord {
  i32 from_file, to_file;
  i64 from, to, bytes;
  std::string name;  // of the object that it is

  CopyTask task() const {
    CopyTask out;
    out.conversion = no_conversion(DType::kU8);
    i32 source = out.plan.add_source({from_file, from, bytes, 1, -1});
    i32 destination = out.plan.add_destination({to_file, to, bytes, 1, -1});
    out.plan.add(destination, {.slot = source, .length = bytes});
    out.plan.finish();
    return out;
  }
};

// Tells the sums of what the record holds; `file` is the one that it lies in. Throws what opening an archive
// throws: one that cannot be opened is not carried on.
void expect_record(ReadSums& sums, const ByteSource& file, const CarriedRecord& record);

// The same of objects that are files beside the data and are copied with them.
void expect_object_files(ReadSums& sums, const Store& store);

}  // namespace mckpt
