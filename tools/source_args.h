// The args of the run that wrote a DCP folder, wherever they are: the object `args` of fsdp_dtensor, an entry
// of the common state of torch_dist, in an object or in common.pt.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "convert/pattern_args.h"
#include "io/store.h"
#include "tools/output.h"

namespace mckpt {

// The pickle in an object's record. Throws what TorchZip throws, kUnsupportedTorchFile where the object holds
// tensors, whose bytes are beside the pickle.
std::string object_pickle(const Store& store, const Object& object);

class SourceArgs {
 public:
  explicit SourceArgs(const Store& store);  // which must outlive it

  const PickleValue* value() const { return value_; }  // null: there are none
  // The pickle of the object with the changes, where it is one that holds the args and there are changes;
  // warns of what cannot be changed.
  std::optional<std::string> patched(i64 object, std::span<const ArgChange> changes,
                                     const GlobalFlags& flags) const;
  // The same of common.pt, as a file; "" where it stays as it is.
  std::string patched_file(std::span<const ArgChange> changes, const GlobalFlags& flags) const;

 private:
  const Store& store_;
  std::shared_ptr<const PickleValue> holder_;
  const PickleValue* value_ = nullptr;
};

}  // namespace mckpt
