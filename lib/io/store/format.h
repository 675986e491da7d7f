// The formats of checkpoints that are read. format_text() is what people and JSON are shown.
#pragma once

#include <iterator>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

enum class Format : u8 {
  kSafetensors,
  kSafetensorsFolder,
  kSafetensorsShards,
  kTorchZip,
  kTorchLegacy,
  kTorchShards,
  kTorchRanks,
  kTorchFlat,  // of ranks, whose tensors are one-dimensional: their shapes are in no file
  kTorchFiles,
  kDeepSpeed,
  kMegatronRanks,
  kDcp,  // none of the dialects below
  kDcpFsdpDtensor,
  kDcpMegatronFsdp,
  kDcpTorchDist,
  kDcpStateDict,
  kHdf5,
};

// Formats with one reader and one kind of files.
enum class FormatFamily : u8 { kSafetensors, kTorch, kMegatron, kDcp, kHdf5 };

constexpr FormatFamily format_family(Format format) {
  if (format <= Format::kSafetensorsShards) return FormatFamily::kSafetensors;
  if (format <= Format::kDeepSpeed) return FormatFamily::kTorch;
  if (format == Format::kMegatronRanks) return FormatFamily::kMegatron;
  return format <= Format::kDcpStateDict ? FormatFamily::kDcp : FormatFamily::kHdf5;
}

// A literal, which ends with a NUL.
constexpr std::string_view format_text(Format format) {
  constexpr std::string_view kTexts[] = {"safetensors",
                                         "safetensors folder",
                                         "safetensors shards (torch DCP)",
                                         "torch.save zip",
                                         "torch.save legacy",
                                         "torch.save, sharded",
                                         "torch.save, one file a rank",
                                         "torch.save, flat pieces of ranks",
                                         "torch.save, several files",
                                         "DeepSpeed ZeRO",
                                         "Megatron per-rank .pt",
                                         "DCP",
                                         "DCP fsdp_dtensor",
                                         "DCP megatron_fsdp",
                                         "DCP torch_dist",
                                         "DCP state_dict",
                                         "HDF5"};
  static_assert(std::size(kTexts) == static_cast<std::size_t>(Format::kHdf5) + 1);
  return kTexts[static_cast<std::size_t>(format)];
}

}  // namespace mckpt::impl
