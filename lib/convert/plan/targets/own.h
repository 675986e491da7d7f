// A checkpoint whose tensors have the model's own names (torch DCP of FSDP2, accelerate and torchtitan, rank
// files of verl, DeepSpeed, .pt files, safetensors) as safetensors files. No table of the model is needed.
//
//   pytorch_model_fsdp_0/__0_0.distcp ...   -->   DST/model-00001-of-00002.safetensors, ..., config.json
//                                           -->   model.safetensors
//
// Tensors are under the names of the Hugging Face folder, in the types in which they are stored unless others
// are asked for. Optimizer states and objects are left out, and a note names them.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/plan/targets/hf.h"
#include "core/base/error_code.h"
#include "core/base/int.h"
#include "io/file/open_options.h"
#include "io/safetensors/layout.h"

namespace mckpt::impl {

class Notes;
class Store;
class Target;
struct Opened;
struct OwnModel;
struct SideFiles;
struct Conversion;

// One file. `target` is the file that is made.
struct OneFileOptions {
  std::string source, target;
  std::optional<std::string> assets{};  // says which names the model has; without it they are as they are
  std::string model_dict{};             // as in OwnModelOptions
  std::vector<Code> accept{};           // codes of damage that is accepted
  OpenOptions files{};
  ExportTypes types{};
  int threads = 1;  // that plan: they compare tied tensors
};

inline constexpr const char* kHfFormat = "Hugging Face safetensors";
// The headers of all files, with the index: they differ for another layout.
std::string headers_of(const SafetensorsLayout& layout);

// A folder of what is opened under its own names. Throws what SafetensorsLayout and tensor_job() throw;
// kNoSuchTensor for a rule of types that matches nothing.
std::unique_ptr<Target> own_folder(const Opened& source, const ExportOptions& options);
// The same of a store that is open; options.source is its path. Throws what open_own() throws too.
Conversion plan_export_own(std::unique_ptr<Store> source, const ExportOptions& options);
// A folder of all tensors of a model that the caller has opened, with these files beside them.
struct FolderOptions {
  std::string target;
  i64 max_shard_bytes = kUsualShardBytes;  // unless the model's `original` has the same tensors
};
Conversion plan_folder(OwnModel model, std::string_view mode, SideFiles assets, const FolderOptions& options);
// Whether a file of torch.save is named .safetensors, or a safetensors file .pt: programs that go by names
// would take it for the other format. Refused with kUsage.
bool names_other_format(const std::string& target, bool torch);
void refuse_other_name(const std::string& target, bool torch);
// Says that the files of a result are laid out as in the model's own folder, or that tensors are larger than
// a file should be.
void note_files(const SafetensorsLayout& layout, i64 max_shard_bytes, Notes& notes);

// Throws what the former and open_store() throw.
Conversion plan_to_safetensors(const OneFileOptions& options);
// Plans one file of a source that is open already; options.source is its path.
Conversion plan_one_file(std::unique_ptr<Store> source, const OneFileOptions& options);

}  // namespace mckpt::impl
