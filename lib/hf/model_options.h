// Options of opening a Hugging Face model.
#pragma once

#include <string>

#include "hf/folder/expert_layout.h"
#include "hf/quantized/bad_numbers.h"
#include "io/file/open_options.h"

namespace mckpt::impl {

// How to read a model if its folder leaves something open.
struct HfModelOptions {
  ExpertLayout expert_layout = ExpertLayout::kAuto;
  std::string map_file{};  // a file with rows over the built-in tables; "": none
  // The text of the map that a checkpoint of the model was made with, as the checkpoint keeps it. A map file
  // with other rows is refused.
  std::string kept_map{};
  OpenOptions files{};  // how the files of the folder are opened
  // Only shapes are wanted. A folder whose weights are quantised by a method that is not decoded is then
  // opened by its config alone: its shapes are those before quantisation, which is a warning.
  bool shapes_only = false;
  BadNumbers bad_numbers = BadNumbers::kRefuse;  // among the codes and scales of quantised weights
  // A tensor that the config ties to another one and that has other bytes is lost, and so refused, whatever
  // the model is opened for. True: the caller tells it, or reads no weights of this folder.
  bool leave_unlike_copies = false;
  int threads = 0;  // that compare such tensors; 0: one for each processor
};

}  // namespace mckpt::impl
