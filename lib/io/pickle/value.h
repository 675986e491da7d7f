// Values of a pickle: what the interpreter (io/pickle/pickle.h) builds instead of Python objects. A value
// is 8 bytes, a kind and a payload; what does not fit is in the arena of the Pickle that made it, which
// must outlive it.
//
//   [ kind: 8 bits | payload: 56 bits ]     kInt: the number itself; kText, kList, ...: a pointer
//
//                    .------ arena --------------------------------------.
//   kDict  pointer -----> PickleDict {count 2} -> chunk [k v k v] -> chunk
//   kText  pointer -----> PickleBytes {count 5, data} -> the pickle's own bytes
//   kObject pointer ----> PickleObject {type, args, state, items}
//
// The lowest bit of such a pointer says that the value is of the second Python type of its kind.
#pragma once

#include <bit>
#include <iterator>
#include <optional>
#include <span>
#include <string_view>

#include "core/base/int.h"

namespace mckpt::impl {

struct PickleClass;
struct PickleObject;

// The head of everything in the arena, in 8 bytes.
struct PickleNode {
  u64 count : 28;  // bytes of a text, items of a tuple, list or set, entries of a dict; see is_member()
  u64 memo : 26;   // a container's slot in the memo + 1; a visitor's note on a text; 0: none
  u64 depth : 9;   // of the containers below it, itself included
  u64 shared : 1;  // a container may be referred to from two places
};

// A value, copied like a number. It never owns anything: values of one Pickle live as long as that. A
// default value is None.
class PickleValue {
 public:
  // The order matters: kinds from kWideInt up have a node, those from kTuple up are containers.
  enum class Kind : u8 {
    kNone,
    kBool,
    kInt,      // 56 bits
    kRow,      // what a visitor took; row() is its number
    kHole,     // not a value: an empty slot of the memo, or one whose object is not made yet
    kClass,    // a class or function by its name, never the thing itself
    kWideInt,  // 64 bits
    kBigInt,   // more: little-endian two's complement, as bytes()
    kFloat,
    kText,
    kBytes,
    kTuple,
    kList,
    kSet,
    kDict,
    kObject,   // what a class or function would have made of its arguments and state
    kStorage,  // a tensor's storage, named by a persistent id; as_object().args is the id
  };

  PickleValue() = default;  // None
  Kind kind() const { return static_cast<Kind>(bits_ >> 56); }
  bool is(Kind kind_) const { return kind() == kind_; }
  bool is_int() const { return is(Kind::kInt) || is(Kind::kWideInt); }
  bool is_none() const { return is(Kind::kNone); }
  // Two types of Python share a kind, because readers want the same of both; a comparison tells them apart.
  //
  //   kind     kDict         kList   kSet        kTuple       kBytes
  //   first    dict          list    set         tuple        bytes
  //   second   OrderedDict   deque   frozenset   torch.Size   bytearray
  bool is_second_type() const {
    return kind() >= Kind::kBytes && kind() <= Kind::kDict && (bits_ & kSecond) != 0;
  }
  PickleValue as_first_type() const {
    return is_second_type() ? PickleValue(kind(), bits_ & ~kSecond) : *this;
  }

  // These throw kBadPickle, naming `what`, if the value is of another kind.
  i64 to_int(std::string_view what) const;
  double to_float(std::string_view what) const;  // of an integer as well
  std::string_view to_text(std::string_view what) const;

  // pre of these: the kind fits. Texts point into the pickle's own bytes where they can.
  bool as_bool() const { return payload() != 0; }
  i64 as_int() const;
  double as_float() const;
  std::string_view text() const;      // kText
  std::span<const u8> bytes() const;  // kBytes, kBigInt, kText
  const PickleClass& as_class() const { return *pointer<PickleClass>(); }
  const PickleObject& as_object() const { return *pointer<PickleObject>(); }

  class Items;
  class Entries;
  i64 size() const;                 // of a tuple, list, set, dict (entries), text or bytes; 0 for the rest
  Items items() const;              // of a tuple, list or set; none for the rest
  Entries entries() const;          // of a dict; none for the rest
  PickleValue at(i64 index) const;  // of a tuple; None beyond its end
  const PickleValue* find(std::string_view key) const;  // of a dict, by a text key; null: not there
  std::span<const PickleValue> tuple() const;           // empty for the rest
  PickleValue attributes() const;                       // of a dict that carries some (a module's _metadata)

  // A number that a visitor wrote beside a text, and which every reference to this very text then finds; 0:
  // none. An equal text elsewhere in the pickle does not have it. pre: kText
  u32 note() const { return node()->memo; }
  static constexpr u32 kMostNote = (u32{1} << 26) - 1;
  void set_note(u32 v) const { pointer<PickleNode>()->memo = v & kMostNote; }

  // The number that a visitor returned for this object.
  std::optional<u64> row() const;

  // Whether both are the same value of the pickle. Equal texts at two places of it are two values.
  friend bool operator==(PickleValue a, PickleValue b) { return a.bits_ == b.bits_; }
  // The identity of the value in the arena, to recognise it on another path; null for plain values.
  const PickleNode* node() const { return kind() >= Kind::kWideInt ? pointer<PickleNode>() : nullptr; }
  // The node of containers and objects alone. Texts are not looked at: there are half a million of them far
  // apart in memory, and each look would be a cache miss.
  const PickleNode* container() const { return kind() >= Kind::kTuple ? pointer<PickleNode>() : nullptr; }

 private:
  friend class PickleArena;
  static constexpr u64 kPayload = (u64{1} << 56) - 1;  // enough for a pointer of any 64-bit Linux
  static constexpr u64 kSecond =
      1;  // nodes are at addresses that 8 divides, so the low bits of pointers are free

  PickleValue(Kind kind_, u64 payload_) : bits_(static_cast<u64>(kind_) << 56 | (payload_ & kPayload)) {}
  u64 payload() const { return bits_ & kPayload; }
  template <typename T>
  T* pointer() const {
    return reinterpret_cast<T*>(payload() & ~u64{7});
  }

  u64 bits_ = 0;
};

// The structs below are in the arena behind a value. Lists, sets and dicts grow by chunks, which are never
// moved; a dict's chunk has keys and values in turn.
struct PickleChunk {
  PickleChunk* next;
  u32 count, capacity;
  PickleValue* values() { return reinterpret_cast<PickleValue*>(this + 1); }
  const PickleValue* values() const { return reinterpret_cast<const PickleValue*>(this + 1); }
};
struct PickleBytes : PickleNode {
  const u8* data;
};
struct PickleNumber : PickleNode {
  u64 bits;  // of the i64 or the double
};
struct PickleList : PickleNode {
  PickleChunk *first, *last;
};
struct PickleDict : PickleList {
  PickleValue attributes;
};
// A call of a class or function, as a record: nothing is made, so a tensor, an enum's member and an
// argparse.Namespace all look like this.
struct PickleObject : PickleNode {
  const PickleClass* type;  // null for a storage
  PickleValue args;         // of its class or function, a tuple
  PickleValue state;        // what BUILD gave it; None: nothing
  PickleValue items;        // a list or dict that it holds besides (it is a subclass of one); None: nothing

  // Python reaches an enum's member as getattr(type, name); the only argument here is that name. (Calling
  // the type with it would look for a member of that value.)
  bool is_member() const { return count == 1; }
  // The field of this name in a state that is a dict, or a tuple of a dict and one of slots; null if there
  // is none.
  const PickleValue* field(std::string_view name) const;
};

// The items of a tuple, list or set, for a range loop.
class PickleValue::Items {
 public:
  class Iterator {
   public:
    using value_type = PickleValue;
    using difference_type = std::ptrdiff_t;
    using iterator_category = std::forward_iterator_tag;
    Iterator() = default;
    explicit Iterator(std::span<const PickleValue> tuple) : at_(tuple.data()), end_(at_ + tuple.size()) {
      settle();
    }
    explicit Iterator(const PickleChunk* first) : next_(first) { settle(); }
    const PickleValue& operator*() const { return *at_; }
    const PickleValue* operator->() const { return at_; }
    Iterator& operator++() {
      ++at_;
      settle();
      return *this;
    }
    Iterator operator++(int) {
      Iterator old = *this;
      ++*this;
      return old;
    }
    friend bool operator==(const Iterator& a, const Iterator& b) { return a.at_ == b.at_; }

   private:
    friend class Entries;
    void settle() {
      while (at_ == end_) {
        at_ = next_ ? next_->values() : nullptr;
        end_ = next_ ? at_ + next_->count : nullptr;
        if (next_ == nullptr) return;
        next_ = next_->next;
      }
    }
    const PickleValue *at_ = nullptr, *end_ = nullptr;
    const PickleChunk* next_ = nullptr;
  };
  Items() = default;
  explicit Items(Iterator begin) : begin_(begin) {}
  Iterator begin() const { return begin_; }
  Iterator end() const { return {}; }

 private:
  Iterator begin_;
};

// A key and its value in a dict.
struct PickleEntry {
  PickleValue key, value;
};

// The entries of a dict, for a range loop, in the order in which they were set; equal keys are not joined.
class PickleValue::Entries {
 public:
  class Iterator {
   public:
    Iterator() = default;
    explicit Iterator(Items::Iterator at) : at_(at) {}
    // A key and its value are always in one chunk.
    PickleEntry operator*() const { return {at_.at_[0], at_.at_[1]}; }
    Iterator& operator++() {
      at_.at_ += 2;
      at_.settle();
      return *this;
    }
    friend bool operator==(const Iterator&, const Iterator&) = default;

   private:
    Items::Iterator at_;
  };
  Entries() = default;
  explicit Entries(Iterator begin) : begin_(begin) {}
  Iterator begin() const { return begin_; }
  Iterator end() const { return {}; }

 private:
  Iterator begin_;
};

inline i64 PickleValue::as_int() const {
  if (is(Kind::kWideInt)) return static_cast<i64>(pointer<PickleNumber>()->bits);
  return static_cast<i64>(bits_ << 8) >> 8;
}
inline double PickleValue::as_float() const { return std::bit_cast<double>(pointer<PickleNumber>()->bits); }
inline std::span<const u8> PickleValue::bytes() const {
  const auto& b = *pointer<PickleBytes>();
  return {b.data, b.count};
}
inline std::string_view PickleValue::text() const {
  return {reinterpret_cast<const char*>(bytes().data()), bytes().size()};
}
inline std::optional<u64> PickleValue::row() const {
  if (is(Kind::kRow)) return payload();
  if (is(Kind::kObject) && as_object().state.is(Kind::kRow)) return as_object().state.payload();
  return std::nullopt;
}
inline std::span<const PickleValue> PickleValue::tuple() const {
  if (!is(Kind::kTuple)) return {};
  return {reinterpret_cast<const PickleValue*>(node() + 1), node()->count};
}
inline PickleValue PickleValue::at(i64 index) const {
  std::span<const PickleValue> t = tuple();
  return index >= 0 && index < std::ssize(t) ? t[index] : PickleValue();
}
inline PickleValue::Items PickleValue::items() const {
  if (is(Kind::kTuple)) return Items(Items::Iterator(tuple()));
  if (!is(Kind::kList) && !is(Kind::kSet)) return {};
  return Items(Items::Iterator(pointer<PickleList>()->first));
}
inline PickleValue::Entries PickleValue::entries() const {
  if (!is(Kind::kDict)) return {};
  return Entries(Entries::Iterator(Items::Iterator(pointer<PickleList>()->first)));
}
inline PickleValue PickleValue::attributes() const {
  return is(Kind::kDict) ? pointer<PickleDict>()->attributes : PickleValue();
}

// Whether the value is or contains one of this kind, at any depth; keys, states and attributes count.
bool contains_kind(PickleValue v, PickleValue::Kind kind);

// "a list", "an integer": for messages.
std::string_view kind_name(PickleValue::Kind kind);
// "list", "deque": the Python type of a dict, list, set, tuple or bytes; "" for the rest.
std::string_view python_type(PickleValue v);

}  // namespace mckpt::impl
