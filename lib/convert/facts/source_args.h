// SourceArgs: the args of the training run that wrote a DCP folder, and the objects that hold them, with
// changed values. The args are either an object of the DCP folder or, in older torch_dist saves, a part of
// the file common.pt:
//
//   SourceArgs args(store);
//   args.value()                          the unpickled dict or Namespace, read once
//   args.patched(object, changes, notes)  the archive of that object with new values, its tensors unchanged
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "convert/jobs/carried_record.h"
#include "core/base/int.h"

namespace mckpt::impl {

class Notes;
class PickleValue;
class Store;
struct ArgChange;
struct Object;

// A field that the args of every run have, beside which other fields are put.
inline constexpr std::string_view kAlwaysThere = "num_layers";

// The pickle in an object's record. Throws what TorchZip throws, and kUnsupportedTorchFile for an object that
// holds tensors, whose bytes are beside the pickle.
std::string object_pickle(const Store& store, const Object& object);

// Puts an object of the source into the rank's file of the layout, and what is to be copied for it into
// `records`. The record is copied as it is, except where the source's records are packed: the result says of
// no record that it is packed, so the object is written afresh. pre and throws as carry_object();
// kUnsupportedTorchFile for an object that is packed and has tensors in it.
void add_carried(const Store& source, const Object& object, DcpLayout& layout, DcpName name, i32 rank,
                 std::vector<CarriedRecord>& records);

// The args of one store. The value is read when the object is constructed; patched pickles are made on
// request.
class SourceArgs {
 public:
  // The store must outlive it. Throws what reading the object throws: no run could load such args either.
  explicit SourceArgs(const Store& store);

  const PickleValue* value() const { return value_.get(); }  // null: the folder has no args
  // The archive of an object with the changes; nothing for an object that does not hold the args, or without
  // changes. Adds a warning for each value that cannot be changed.
  std::optional<std::string> patched(i64 object, std::span<const ArgChange> changes, Notes& notes) const;
  // The file common.pt with the changes; "" if it stays as it is.
  std::string patched_file(std::span<const ArgChange> changes, Notes& notes) const;

 private:
  const Store& store_;
  std::shared_ptr<const PickleValue> value_;
};

}  // namespace mckpt::impl
