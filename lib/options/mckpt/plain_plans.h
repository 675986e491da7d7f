// Conversions that need no table of the model and no grid, each kind a struct of plain values, as in
// mckpt/plans.h: of whole checkpoints with the names that the model has, and of single files.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mckpt/options.h"

namespace mckpt {

// The model in a checkpoint with the model's own names -> one safetensors file, under the names that its
// tensors have in a Hugging Face folder. Optimizer states are left out.
struct ToSafetensors {
  std::string source{}, target{};
  std::optional<std::string> assets{};  // folder with the model's config.json: says which names it has
  std::string dtype = "keep";           // of floating-point tensors: keep (as stored), bf16, fp16, fp32
  std::vector<std::pair<std::string, std::string>> dtype_rule{};
  std::vector<std::string> accept{};  // damage that is accepted: "MC1311"
  OpenOptions files{};
  // Name of the dict that holds the model ("actor") when a save has several; none: detect it
  std::optional<std::string> model_dict{};
};

// A checkpoint -> a folder that torch.distributed.checkpoint loads, with names kept: all of a DCP folder; of
// any other checkpoint the tensors of the model.
struct ToDcp {
  std::string source{}, target{};
  std::optional<std::int64_t> dp{};  // ranks that the rows are divided among; none: as many as wrote it, or 1
  std::optional<std::string>
      section{};  // the dict in which the tensors are, "app.model."; not of a DCP folder
  // The model's folder, of files of LOCAL_STATE_DICT: it has their shapes
  std::optional<std::string> assets{};
  bool weights_only = false;  // leave the states of the optimizer out
  // Type of the model's floats: keep (as stored), bf16, fp16, fp32. States of the optimizer keep their types
  std::string dtype = "keep";
  std::vector<std::string> accept{};  // damage that is accepted: "MC1311"
  OpenOptions files{};
  std::optional<std::string> model_dict{};  // as of ToSafetensors; not of a DCP folder
};

// A Hugging Face folder of quantised weights, or one safetensors file of them -> a folder, or a file, of
// their values.
struct Dequantize {
  std::string source{}, target{};
  // Type of the weights that are quantised: auto (as config.json says, else bf16), bf16, fp16, fp32; other
  // tensors keep theirs
  std::string dtype = "auto";
  std::optional<std::int64_t> max_shard_size{};  // none: kUsualShardSize
  std::vector<std::string> accept{};             // damage that is accepted: "MC2017"
  OpenOptions files{};
};

// A Hugging Face folder of plain numbers -> one of codes and scales.
struct Quantize {
  std::string source{}, target{};
  // Fp8-block, mxfp4, or like-source: what the model in `like` has, with its scales where values are equal
  std::string scheme{};
  std::optional<std::string> like{};
  std::optional<std::int64_t> max_shard_size{};  // none: kUsualShardSize, of like-source the files of `like`
  OpenOptions files{};
};

// A checkpoint of any format, with all its files -> an HDF5 archive (docs/formats/archive.md).
struct ToHdf5 {
  std::string source{}, target{};
  bool single_file = false;             // `target` is a file, as one that ends in .h5 always is
  std::optional<std::string> assets{};  // folder with config.json and tokenizer that go into the archive
  std::vector<std::string> accept{};    // damage that is accepted: "MC1311"
  OpenOptions files{};
};

// An archive -> the files that it was made of, byte for byte.
struct FromHdf5 {
  std::string source{}, target{};
  OpenOptions files{};
};

// The tensors of a .pt file, or of a folder of them -> one safetensors file.
struct PtToSafetensors {
  std::string source{}, target{};
  std::vector<std::string> include{}, exclude{};  // globs; no include: all tensors
  bool tensors_only = false;                      // leave out what is not a tensor, instead of refusing it
  OpenOptions files{};
};

// The tensors of safetensors files -> one .pt file.
struct ToPt {
  std::string source{}, target{};
  std::vector<std::string> include{}, exclude{};
  OpenOptions files{};
};

}  // namespace mckpt
