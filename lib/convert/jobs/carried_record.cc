// A carried record is copied as a tensor of bytes: a region of item size 1 whose tensor is -1, so that the
// proof counts it as an object and not as a tensor.
#include "convert/jobs/carried_record.h"

#include "core/base/error.h"
#include "core/items/item_cast.h"
#include "io/copy/job.h"
#include "io/copy/read_sums.h"
#include "io/dcp/item.h"
#include "io/dcp/write/layout.h"
#include "io/store/store.h"
#include "io/store/store_files.h"

namespace mckpt::impl {

CopyTask CarriedRecord::task() const {
  CopyTask out;
  out.cast = no_cast(DType::kU8);
  i32 source = out.plan.add_source({from_file, from, bytes, 1, -1});
  i32 destination = out.plan.add_destination({to_file, to, bytes, 1, -1});
  out.plan.add(destination, {.slot = source, .length = bytes});
  out.plan.finish();
  return out;
}

CarriedRecord carry_object(const Store& source, const Object& o, DcpLayout& layout, DcpName name, i32 rank) {
  if (o.file < 0)
    throw Error(Code::kRecordMissing, "the object has no bytes").file(source.root()).tensor(o.name);
  i64 to = layout.add_object_record(std::move(name), rank, o.record_bytes);
  return {o.file, rank, o.record_offset, to, o.record_bytes, o.name};
}

std::vector<Checksum> sums_of_record(const ByteSource& file, const CarriedRecord& record) {
  std::vector<Checksum> sums;
  RecordSource source(file, record.from, record.bytes);
  each_item_checksum(source, [&](i64 offset, i64 bytes, u32 crc32, std::string_view) {
    sums.push_back({record.from_file, record.from + offset, bytes, crc32, record.name});
  });
  return sums;
}

void expect_object_files(ReadSums& sums, const Store& store) {
  StoreBytes files(store);
  for (const Object& o : store.objects())
    if (is_file(store, o))
      for (const Checksum& sum : sums_of_record(files[o.file], {o.file, 0, 0, 0, o.record_bytes, o.name}))
        sums.expect(sum);
}

}  // namespace mckpt::impl
