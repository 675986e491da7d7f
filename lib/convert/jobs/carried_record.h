// An object of the source that goes into the result byte for byte, and the checksums by which it is judged.
#pragma once

#include <string>
#include <vector>

#include "core/base/int.h"

namespace mckpt::impl {

class ByteSource;
class DcpLayout;
class ReadSums;
class Store;
struct Checksum;
struct CopyTask;
struct DcpName;
struct Object;

struct CarriedRecord {
  i32 from_file, to_file;
  i64 from, to, bytes;
  std::string name;  // of the object that it is

  CopyTask task() const;  // without sums
};

// Gives the object a place in the rank's file of the layout. pre: the rank's chunks are all there. Throws
// kRecordMissing where the object has no bytes.
CarriedRecord carry_object(const Store& source, const Object& object, DcpLayout& layout, DcpName name,
                           i32 rank);

// The checksums of what the record holds; `file` is the one that it lies in. Throws what opening an archive
// throws: one that cannot be opened is not carried on.
std::vector<Checksum> sums_of_record(const ByteSource& file, const CarriedRecord& record);

// Tells the sums of objects that are files beside the data and are copied with them.
void expect_object_files(ReadSums& sums, const Store& store);

}  // namespace mckpt::impl
