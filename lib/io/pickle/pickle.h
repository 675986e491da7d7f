// Pickle: what a pickle describes, as data. The interpreter runs protocols 0 to 5 and has no call: where
// Python would import a class or call a function, it writes down the name and the arguments. Streams are
// bounded: 256 MB, memory proportional to the stream, containers nested 511 deep.
//
//   c argparse Namespace, ), \x81, }(...), b   -->   object {type argparse.Namespace, args (), state {...}}
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
// costs what the visitor keeps of them.
class PickleVisitor {
 public:
  virtual ~PickleVisitor() = default;
  // `state` is what BUILD is about to give the object. A number (below 2^56): the visitor has read the two,
  // and the number stands for the object from now on, as PickleValue::row().
  virtual std::optional<u64> build(const PickleObject& object, PickleValue state) = 0;
  // The same of an object that was made without arguments and of a state that would become a dict for it
  // alone: its keys, which are texts, and values in turn. What is not taken comes to build() as a dict.
  virtual std::optional<u64> build(const PickleClass& type, std::span<const PickleValue> state) {
    static_cast<void>(type), static_cast<void>(state);
    return std::nullopt;
  }
};

struct PickleRules {
  bool storages = false;  // persistent ids name storages, as inside a torch file; refused elsewhere
  i64 stored_bytes = -1;  // what the pickle takes up in its file; less than its size where it is compressed
  PickleVisitor* visitor = nullptr;
};

// What is odd about a pickle but leaves it readable.
struct PickleNote {
  Code code;
  std::string message;
  i64 offset = 0;  // in the pickle
  bool warning = false;
};

class Pickle {
 public:
  // Reads the pickle at the front of `bytes`, which must outlive the result. Throws kBadPickle, kPickleLimit,
  // kUnsupportedPickle; PickleTruncated when the bytes end before the pickle does.
  explicit Pickle(std::span<const u8> bytes, const PickleRules& rules = {});
  Pickle(const Pickle&) = delete;
  Pickle& operator=(const Pickle&) = delete;

  // The same, keeping the bytes.
  static std::shared_ptr<const Pickle> own(std::vector<u8> bytes, const PickleRules& rules = {});

  PickleValue root() const { return root_; }
  int protocol() const { return protocol_; }
  i64 bytes() const { return bytes_; }                      // of the stream that the pickle takes up
  i64 stored_bytes() const { return stored_bytes_; }        // that it takes up in its file
  i64 memory_bytes() const { return arena_.used_bytes(); }  // at most, while it was read
  const std::deque<PickleClass>& classes() const { return classes_; }
  // Every storage, once for each time that it is named.
  std::span<const PickleValue> storages() const { return storages_; }
  // About classes (unsafe ones first), and what the interpreter met.
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

class PickleTruncated : public Error {
 public:
  using Error::Error;
};

}  // namespace mckpt::impl
