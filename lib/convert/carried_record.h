// A record of the source that goes into the result byte for byte.
#pragma once

#include "io/copy_job.h"

namespace mckpt {

struct CarriedRecord {
  i32 from_file, to_file;
  i64 from, to, bytes;

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

}  // namespace mckpt
