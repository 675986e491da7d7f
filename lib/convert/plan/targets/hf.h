// A checkpoint into a Hugging Face folder: the tensors under their original names and in their original
// packing, with config, tokenizer and code.
//
//   ckpt/release/__0_0.distcp ...   -->   DST/model-00001-of-00002.safetensors, ..., config.json, tokenizer.json
//
// Padding of the vocabulary is cut off, tied tensors are written again, and a new file begins before one
// would have more than `max_shard_bytes` of tensors.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "convert/keys/name_rules.h"
#include "convert/open/options.h"
#include "core/base/int.h"
#include "core/items/dtype.h"
#include "io/safetensors/layout.h"

namespace mckpt::impl {

class Notes;
struct SideFiles;
struct Conversion;

// The data types of the exported tensors: one kind for all, and rules for single tensors, which come first.
struct ExportTypes {
  enum Kind : u8 {
    kOriginal,  // the original model's
    kStored,    // those in which the checkpoint stores the tensors
    kGiven
  } kind = kOriginal;
  DType given = DType::kF32;
  DtypeRules rules{};  // the types of single tensors
};

// Plain values. `target` is the folder that is made.
struct ExportOptions {
  std::string source, target;
  CheckpointOptions checkpoint{};
  std::string model_dict{};  // as in OwnModelOptions
  ExportTypes types{};
  i64 max_shard_bytes = kUsualShardBytes;  // of the tensors in one file
  // The files are the files of the model's own folder, if that is known and has the same tensors: names,
  // order and headers byte for byte, whatever `max_shard_bytes` says.
  bool original_files = true;
  int threads = 1;  // that plan: they compare tied tensors
};

// Where most items of a result have another type than config.json promises: a type that was asked for is
// written into the config, too; otherwise the config is copied as it is, and a warning says that programs
// that go by it cast what they load. `items`: of the result, by type.
void follow_types(const ExportTypes& types, std::optional<DType> promised, const std::map<DType, i64>& items,
                  SideFiles& assets, Notes& notes);

// Throws kUsage for a limit below one byte, and what open_sharded(), SafetensorsLayout, export_job() and
// plan_export_own() throw.
Conversion plan_export(const ExportOptions& options);

}  // namespace mckpt::impl
