// A folder whose weights are torch's gets a help of its own: they can be converted first.
#include "convert/source/hf_weights.h"

#include "core/base/error.h"
#include "hf/assets.h"
#include "hf/model.h"
#include "io/file/folder.h"

namespace mckpt::impl {

HfModel open_hf_weights(const std::string& path, const HfModelOptions& options) {
  HfModel model = open_hf_model(path, options);
  if (model.has_data()) return model;
  std::string source = escaped(path, 4096);
  throw Error(Code::kNotFound, "the folder has no weights to convert")
      .file(path)
      .expected("safetensors files")
      .help(has_torch_weights(Folder(path, options.files))
                ? cat("mckpt convert pt-to-safetensors ", source, " ", source,
                      "/model.safetensors   makes safetensors of the .bin files there")
                : "download the model with its weights");
}

}  // namespace mckpt::impl
