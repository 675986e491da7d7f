// Pickle: what a pickle describes, as data. A pickle is a program for a small stack machine; Python runs it
// and thereby imports classes and calls functions, which is why loading one can run any code. The
// interpreter here runs protocols 0 to 5 too but has no call: where Python would import or call, it writes
// down the name and the arguments.
//
//   bytes                            stack afterwards                        memo
//   80 02        PROTO 2
//   c argparse\nNamespace\n          class argparse.Namespace
//   )            EMPTY_TUPLE         class, ()
//   81           NEWOBJ              object {type Namespace, args ()}
//   71 00        BINPUT 0            object                                  0: object
//   7d           EMPTY_DICT          object, {}
//   58 .. lr, .. SETITEM        object, {"lr": 0.5}
//   62           BUILD               object {.., state {"lr": 0.5}}
//   2e           STOP                root() is the object
//
// The memo is how a pickle refers to a value a second time (BINGET 0), so values may be shared and even
// contain themselves. Streams are bounded: 256 MB, memory proportional to the stream, containers nested 511
// deep.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/error.h"
#include "io/pickle/arena.h"
#include "io/pickle/classes.h"

namespace mckpt::impl {

// Sees objects as soon as they are complete and may take them, so that a pickle of a million small records
// costs only what the visitor keeps of them. DcpRows (io/dcp/metadata/rows.h) is one.
class PickleVisitor {
 public:
  virtual ~PickleVisitor() = default;
  // `state` is what BUILD is about to give the object. If the visitor returns a number (below 2^56), it has
  // read both, and the number represents the object from now on, as PickleValue::row(). Nothing: the object
  // stays.
  virtual std::optional<u64> build(const PickleObject& object, PickleValue state) = 0;
  // The quick form, for an object without arguments whose state would become a dict for it alone: the
  // dict's keys, all of them texts, and values in turn. A value that is not taken here comes to the other
  // build() as a dict.
  virtual std::optional<u64> build(const PickleClass& type, std::span<const PickleValue> state) {
    static_cast<void>(type), static_cast<void>(state);
    return std::nullopt;
  }
  // The number that represents a container inside of a state that build() took, so that its memory can be
  // given back too; a later reference to it finds the number. Nothing: it stays.
  virtual std::optional<u64> part(PickleValue value) {
    static_cast<void>(value);
    return std::nullopt;
  }
};

// The limits and wishes of a pickle's surroundings.
struct PickleRules {
  bool storages = false;  // persistent ids name storages, as inside a torch file; refused elsewhere
  i64 stored_bytes = -1;  // what the pickle takes up in its file; less than its size where it is compressed
  PickleVisitor* visitor = nullptr;
};

// An oddity that leaves the pickle readable: a class that is not on the list, a call that would run code.
struct PickleNote {
  Code code;
  std::string message;
  i64 offset = 0;  // in the pickle
  bool warning = false;
};

// A pickle that was read; it owns all its values. Made from the bytes of a .metadata, or of data.pkl in a
// torch file. Values point into it, and may point into the bytes.
class Pickle {
 public:
  // Reads the pickle at the front of `bytes`, which must outlive the result. Throws kBadPickle, kPickleLimit,
  // kUnsupportedPickle; PickleTruncated when the bytes end before the pickle does.
  explicit Pickle(std::span<const u8> bytes, const PickleRules& rules = {});
  Pickle(const Pickle&) = delete;
  Pickle& operator=(const Pickle&) = delete;

  // Reads the pickle at the front of `bytes` and keeps them.
  static std::shared_ptr<const Pickle> own(std::vector<u8> bytes, const PickleRules& rules = {});

  PickleValue root() const { return root_; }
  int protocol() const { return protocol_; }
  i64 bytes() const { return bytes_; }                      // of the stream that the pickle takes up
  i64 stored_bytes() const { return stored_bytes_; }        // that it takes up in its file
  i64 memory_bytes() const { return arena_.used_bytes(); }  // at most, while it was read
  const std::deque<PickleClass>& classes() const { return classes_; }
  // Every storage, once for each time that the pickle names it.
  std::span<const PickleValue> storages() const { return storages_; }
  // Notes about classes (unsafe ones first), and what the interpreter noted on the way.
  std::vector<PickleNote> notes() const;

 private:
  friend class PickleMachine;

  i64 stored_bytes_;
  PickleArena arena_;
  std::deque<PickleClass> classes_;
  std::vector<PickleNote> notes_;
  std::vector<PickleValue> storages_;
  std::vector<u8> owned_;
  PickleValue root_;
  i64 bytes_ = 0;
  int protocol_ = 0;
};

// The bytes end before the pickle does: readers of streams may try again with more of them.
class PickleTruncated : public Error {
 public:
  using Error::Error;
};

}  // namespace mckpt::impl
