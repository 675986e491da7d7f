// A checkpoint as a folder that torch.distributed.checkpoint loads, with the names that it has:
//
//   DCP folder           names, nested dicts, optimizer states and objects stay, also objects that are files of
//                        their own (common.pt, and metadata.json with it: torch_dist stays torch_dist); only
//                        the ranks may be others
//   any other checkpoint the tensors of the model, in the dict in which they were, or in `section`:
//                        model.safetensors, "app.model."   -->   {"app": {"model": {"lm_head.weight": ...}}}
//
// The folder is not an iteration of a training run: it has no tracker file.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "convert/keys/stored_chunks.h"
#include "convert/plan/target.h"
#include "convert/plan/targets/plain_layout.h"
#include "core/base/error_code.h"
#include "core/base/int.h"
#include "io/file/open_options.h"

namespace mckpt::impl {

enum class DType : u8;
struct Conversion;

// Plain values. `target` is the folder that is made.
struct ToDcpOptions {
  std::string source, target;
  std::optional<i64> ranks{};  // that the rows are divided among; none: as many as wrote the source
  std::optional<std::string>
      section{};  // in front of all names, each part between dots a dict; not of a DCP folder
  // The model's folder, of tensors that were saved flat: it has their shapes
  std::optional<std::string> assets{};
  std::string model_dict{};   // as in OwnModelOptions
  bool weights_only = false;  // leave the states of the optimizer out
  // The type of the floating-point tensors of the model; none: as they are stored. Those beside it keep their
  // types
  std::optional<DType> dtype{};
  std::vector<Code> accept{};  // codes of damage that is accepted
  OpenOptions files{};
  int threads = 1;
  int rank = 0;  // of this process; rank 0 alone compares the sums of objects that are files
};

// Throws kUsage for a number of ranks below one, `assets` of a source that has its shapes, a type for tensors
// with Megatron's names, or a section of a DCP folder or with an empty part; kQuantized for a type of codes;
// DamagedCheckpoint; and what open_store(), open_own() and tensor_job() throw.
Conversion plan_to_dcp(const ToDcpOptions& options);

// Tensors and objects of a store under the keys that a layout gives them: of a folder that torch loads, and
// of an iteration of a run whose keys follow no convention (convert/plan/reshard/plain.h). The caller adds
// the place, the identity and the words of the result.
class KeptKeys final : public Target {
 public:
  // `object_files_too`: this process copies objects that are files of their own.
  KeptKeys(const Store& store, std::unique_ptr<PlainLayout> layout, bool with_objects, bool object_files_too);
  void write_frame(const FramePlace& to) const override { impl::write_frame(plan_->layout, to); }
  DcpLayout& layout() { return plan_->layout; }

 private:
  std::unique_ptr<PlainLayout> plan_;
  PlannedChunks chunks_;
};

}  // namespace mckpt::impl
