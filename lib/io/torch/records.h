// The small records of an archive of torch.save that torch reads before the pickle. What torch refuses in one
// of them keeps the file from being loaded, whatever else is in it.
#pragma once

#include <string_view>

namespace mckpt::impl {

class ZipArchive;

// Throws unless it is absent or one of torch's two words. `top`: the folder of the archive, with its slash.
bool is_big_endian_archive(const ZipArchive& zip, std::string_view top);

// version, .storage_alignment, .data/serialization_id. Throws kBadTorchFile.
void check_torch_records(const ZipArchive& zip, std::string_view top);

}  // namespace mckpt::impl
