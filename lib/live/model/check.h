// LiveCheck: whether a model in memory holds what the files of the source say. The source is read once more,
// along the runs of the rules for this rank's cell as Megatron holds it at run time; neither the keys of a
// checkpoint nor the plan that loaded the model take part.
#pragma once

#include "core/base/observer.h"
#include "convert/jobs/holding_reader.h"
#include "live/device/device_bytes.h"
#include "live/model/model.h"

namespace mckpt::impl {

struct LiveCheckOptions {
  int threads = 1;
  Observer* observer = nullptr;  // null: nothing is reported, and nothing stops the check
};

class LiveCheck {
 public:
  struct Difference {
    std::string parameter, what;
    i64 item = 0;  // of the parameter's local order: the first that differs
  };

  // The map's tensors are those of the store. Both outlive this. pre: the model is loaded.
  LiveCheck(const LiveModel& model, const Store& source, const LiveCheckOptions& options = {});

  // The stored weights that this rank has, and the buffers.
  void check_stored();
  // The live values of the parameters of a sharded module. pre: it is unsharded.
  void check_live(i32 module);

  i64 parameters() const { return parameters_; }  // compared so far
  i64 bytes() const { return bytes_; }
  const std::vector<Difference>& differences() const { return differences_; }

 private:
  // A stretch of a parameter: where the values are that it should have.
  struct Piece {
    i32 parameter = 0;
    ItemRange items;
    DType via = DType::kU8, type = DType::kU8;
    std::span<const u8> bytes;
  };
  struct Worker {
    Worker(const Store& store, const StoreFiles& files, Device& device)
        : source(store, files), live(device) {}
    HoldingReader source;
    DeviceReader live;
  };
  void add(i32 parameter, ItemRange items, DType via, DType type, std::span<const u8> bytes);
  void compare(const char* what);  // all that was added
  i64 first_wrong_byte(const Piece& piece, Worker& worker) const;

  const LiveModel& model_;
  LiveCheckOptions options_;
  StoreFiles files_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::vector<Piece> pieces_;
  std::vector<ModelParameter> as_stored_;  // with the types of the source
  i64 parameters_ = 0, bytes_ = 0;
  std::vector<Difference> differences_;
};

}  // namespace mckpt::impl
