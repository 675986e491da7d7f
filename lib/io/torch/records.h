// The small records of an archive of torch.save that torch reads before the pickle (byteorder, version and
// the like). torch refuses the file for an error in one of them, whatever else is in it, so `verify` reads
// them too.
#pragma once

#include <string_view>

namespace mckpt::impl {

class ZipArchive;

// False if the record is absent. Throws unless it is one of torch's two words. `top`: the folder of the
// archive, with its slash.
bool is_big_endian_archive(const ZipArchive& zip, std::string_view top);

// version, .storage_alignment, .data/serialization_id, and the names of all records, which are in one folder.
// Throws kBadTorchFile for what torch refuses.
void check_torch_records(const ZipArchive& zip, std::string_view top);

}  // namespace mckpt::impl
