// The config of a Hugging Face model about its quantised weights: the method and the sizes of blocks and
// groups. It is read from `quantization_config` of config.json (also inside `text_config`, and
// under its older name `compression_config`), or from hf_quant_config.json of ModelOpt.
//
//   {"quant_method": "fp8", "weight_block_size": [128, 128]}                        kFp8, blocks 128 x 128
//   {"quant_method": "compressed-tensors", "format": "pack-quantized", "config_groups": ...}
//   {"quantization": {"quant_algo": "NVFP4", "group_size": 16}}                     kModelOpt
//
// The lists of modules that are not quantised are not read: what is quantised is decided by the presence of
// scales. Whether the tensors are as the config says is judged in claims.h.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/int.h"
#include "core/items/dtype.h"

namespace mckpt::impl {

class Folder;
class JsonValue;

enum class QuantMethod : u8 { kFp8, kMxfp4, kCompressedTensors, kModelOpt };

// Plain values; 0: the config does not say it.
struct QuantConfig {
  QuantMethod method = QuantMethod::kFp8;
  std::string text;       // of the method, for messages: "fp8", "compressed-tensors pack-quantized"
  std::string file;       // that says so: "config.json"
  std::string fmt;        // of the FP8 codes: "e4m3"
  std::string format;     // of compressed-tensors: "pack-quantized"
  std::string version;    // of compressed-tensors that wrote it: "0.10.2"
  std::string algorithm;  // of ModelOpt: "NVFP4"
  // Weights are quantised; otherwise activations or caches alone, whose scales are beside the weights.
  bool of_weights = true;
  bool power_scales = false;  // scale_fmt "ue8m0": scales are powers of two, whatever their type
  i64 block_rows = 0, block_columns = 0;
  // The weights of the groups of compressed-tensors, which may differ between modules.
  struct Weights {
    i64 bits = 0, group_size = 0;
    std::string strategy;  // "group", "channel", "tensor", "block", "tensor_group"
    i64 block_rows = 0, block_columns = 0;
    std::string type{};    // "int", "float"
    std::string format{};  // of this group alone
    std::optional<bool> symmetric{};
    bool ordered_by_group = false;  // actorder: each column has the number of its group
  };
  std::vector<Weights> weights{};
  // Settings that exclude each other, with which compressed-tensors loads no model: "strategy channel with a
  // group_size of 32"; "" if there are none.
  std::string impossible{};
  // Settings that some releases of compressed-tensors load and others refuse, in sentences.
  std::vector<std::string> disputed{};
};

// The declarations of a folder's files.
struct QuantDeclaration {
  std::optional<QuantConfig> config{};
  // "config.json": it is there and declares nothing, so that whoever loads the model takes codes for weights.
  // "": there is no such file, or something is declared.
  std::string silent{};
  // The type of the weights before they were quantised, as config.json says; bfloat16 where it says none.
  DType dtype = DType::kBF16;
};

// The entry of a config that declares quantised weights; null if there is none.
const JsonValue* quantization_entry(const JsonValue& config);
// Throws kQuantized for a method that is not decoded, kBadConfig for an entry that is malformed.
QuantConfig quant_config_of(const JsonValue& entry);
// Throws what the former throws, with the file.
QuantDeclaration read_quant_declaration(const Folder& folder);

// A config.json without the entry that declares quantised weights; otherwise the text is the same. The text
// itself if there is no such entry.
std::string without_quantization(std::string_view config_json);
// With this entry, as JSON, at the end; an entry that is there is replaced. pre: the text is an object.
std::string with_quantization(std::string_view config_json, std::string_view entry);

// The entry as the text has it, at the top or in `text_config`; "" if there is none.
std::string quantization_text(std::string_view config_json);

}  // namespace mckpt::impl
