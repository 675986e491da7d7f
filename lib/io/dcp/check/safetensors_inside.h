// Data files that torch wrote with FileSystemWriter(serialization_format=SerializationFormat.SAFETENSORS):
// one safetensors file for all tensors of a rank, which every chunk in .metadata points to. torch cannot read
// them back.
//
//   __0_0.distcp   [archive of an object][8 bytes | {"a.w": ..., "b.w": ...} | items]
//   .metadata      a.w at byte 1261, 48 bytes      b.w at byte 1261, 20 bytes
#pragma once

#include <string_view>

namespace mckpt::impl {

class Folder;
struct DcpMetadata;

// Whether a data file is one. Nothing is read where all records have room for the archive of their chunk.
bool is_safetensors_inside(const DcpMetadata& metadata, const Folder& folder);

// The fact of a store with such files, and why their tensors cannot be read.
inline constexpr std::string_view kSafetensorsInside =
    "torch wrote the tensors as safetensors (SerializationFormat.SAFETENSORS): .metadata does not say where each of them is, and torch itself cannot read them back";
inline constexpr std::string_view kSaveOtherwise =
    "save the checkpoint again as torch.save does, which is the default, or with HuggingFaceStorageWriter";

}  // namespace mckpt::impl
