// Counts of a copy: items and bytes read and written, and changes by casts.
#pragma once

#include "core/base/int.h"

namespace mckpt::impl {

// Counts of the workers' work; the counts of several are added.
struct CopyCounts {
  i64 bytes_read = 0, bytes_written = 0, reads = 0, writes = 0;
  i64 rounded = 0;   // items, as rounded_items() counts them
  i64 infinite = 0;  // items, as cast_losses() counts them, if wanted

  CopyCounts& operator+=(const CopyCounts& more) {
    bytes_read += more.bytes_read, bytes_written += more.bytes_written;
    reads += more.reads, writes += more.writes;
    rounded += more.rounded, infinite += more.infinite;
    return *this;
  }
};

}  // namespace mckpt::impl
