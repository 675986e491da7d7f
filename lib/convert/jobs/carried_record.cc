#include "convert/jobs/carried_record.h"

#include "io/dcp/item.h"
#include "io/store/store_files.h"

namespace mckpt {

void expect_record(ReadSums& sums, const ByteSource& file, const CarriedRecord& record) {
  RecordSource source(file, record.from, record.bytes);
  each_item_checksum(source, [&](i64 offset, i64 bytes, u32 crc32, std::string_view) {
    sums.expect({record.from_file, record.from + offset, bytes, crc32, record.name});
  });
}

void expect_object_files(ReadSums& sums, const Store& store) {
  StoreBytes files(store);
  for (const Object& o : store.objects())
    if (is_file(store, o)) expect_record(sums, files[o.file], {o.file, 0, 0, 0, o.record_bytes, o.name});
}

}  // namespace mckpt
