// LiveCheck: whether a model in memory contains what the files of the source contain. The source is read once
// more, along the runs of the rules for this rank's cell as Megatron holds it at run time; neither the keys
// of a checkpoint nor the plan that loaded the model are used, so a fault in them shows.
//
//   source files  --rule of the parameter-->  expected bytes   ==?   device memory of stored or live weights
//
// The cost is a read of the rank's share of the files, and a copy of its weights to the host.
#pragma once

#include "core/base/int.h"
#include "core/items/dtype.h"
#include "core/items/item_run.h"
#include "io/store/store_files.h"
#include "live/device/tensor.h"

namespace mckpt::impl {

class LiveModel;
class Observer;
class Store;
struct ModelParameter;

// Plain values; the observer outlives the check.
struct LiveCheckOptions {
  int threads = 1;
  Observer* observer = nullptr;  // null: nothing is reported, and nothing stops the check
};

// The check of one rank. It is not collective: every rank checks its own weights. Findings are kept in
// differences(), one for each parameter and check.
class LiveCheck {
 public:
  struct Difference {
    std::string parameter, what;  // what: "stored weights", "live values" or "the context-parallel slice"
    i64 item = 0;                 // the first that differs, in the parameter's local order
  };

  // pre: the model is loaded, and the store has the tensors of its map. Both outlive this object.
  LiveCheck(const LiveModel& model, const Store& source, const LiveCheckOptions& options = {});
  ~LiveCheck();

  // Compares the stored weights that this rank has, and the buffers.
  void check_stored();
  // Compares the live values of the parameters of a sharded module, and of those that it gathers too. pre:
  // the module is unsharded. Then, with context-parallel ranks, the slices that this rank takes from these
  // values.
  void check_live(i32 module);

  i64 parameters() const { return parameters_; }  // compared so far
  i64 cp_slices() const { return cp_slices_; }    // context-parallel slices compared so far
  i64 bytes() const { return bytes_; }
  const std::vector<Difference>& differences() const { return differences_; }

 private:
  // A stretch of a parameter: its items, the cast from the source, and the device memory to compare.
  struct Piece {
    i32 parameter = 0;
    ItemRange items;
    DType via = DType::kU8, type = DType::kU8;
    std::span<const u8> bytes;
  };
  struct Worker;
  void add(i32 parameter, ItemRange items, DType via, DType type, std::span<const u8> bytes);
  void add_live(i32 parameter);
  void add_slice(i32 parameter);
  void compare(const char* what);  // compares everything that was added, with all workers
  i64 first_wrong_byte(const Piece& piece, Worker& worker) const;

  const LiveModel& model_;
  LiveCheckOptions options_;
  StoreFiles files_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Piece> pieces_;
  std::vector<ModelParameter> as_stored_;  // with the types of the source
  std::vector<Tensor> slices_;             // of the pieces that are to be compared
  i64 parameters_ = 0, bytes_ = 0, cp_slices_ = 0;
  std::vector<Difference> differences_;
};

}  // namespace mckpt::impl
