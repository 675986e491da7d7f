// How checkpoints are opened if their files leave something open. Structs of plain values; the names of the
// fields are the names of the program's options with underscores.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace mckpt {

// The bytes of tensors in one file of a model, as save_pretrained has it.
inline constexpr std::int64_t kUsualShardSize = 5'000'000'000;

// How the files of a checkpoint are opened.
struct OpenOptions {
  bool follow_links = false;  // follow links that lead out of the checkpoint's folder
  // Which weights are read of a folder with model.safetensors and an index that does not name it, of which
  // transformers loads the first and vLLM the second: equal (the folder is refused unless both have the same
  // tensors), single (model.safetensors) or shards (those that the index names)
  std::string model_files = "equal";
  // The Hugging Face model that an adapter of PEFT (LoRA) changes: the folder of an adapter is then read as
  // that model with the adapter merged. Where nothing that is opened is an adapter, a base is refused.
  std::optional<std::string> base{};
};

// How the folder of a Hugging Face model is read if its files leave something open.
struct ModelOptions {
  std::string expert_layout = "auto";  // how experts are stored: auto, apart, fused or hub (transposed)
  std::string map_file{};              // a file with rows that override the built-in table; "": none
  OpenOptions files{};
};

// How a sharded checkpoint is opened as a model if its files leave something open.
struct SourceOptions {
  std::optional<std::string>
      assets{};  // folder of the original model; none: what mckpt kept in the checkpoint
  std::optional<std::int64_t> source_tp{}, source_etp{};  // ranks that wrote it, if it does not say so
  std::vector<std::string> accept{};                      // damage that is accepted: "MC1311"
  ModelOptions model{};
};

}  // namespace mckpt
